#include "mpi_frame.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEADER (2 * sizeof(uint32_t))

void mpi_put(struct mpi_bytes *bytes, const void *data, size_t size) {
    if (bytes->room - bytes->size < size) {
        size_t room = bytes->room ? bytes->room : 4096;
        while (room - bytes->size < size) room *= 2;
        char *grown = realloc(bytes->data, room);
        if (grown == NULL) abort();
        bytes->data = grown;
        bytes->room = room;
    }
    if (size) memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
}

void mpi_put_number(struct mpi_bytes *bytes, uint32_t number) {
    uint32_t sent = htonl(number);
    mpi_put(bytes, &sent, sizeof sent);
}

void mpi_put_text(struct mpi_bytes *bytes, const char *text) { mpi_put(bytes, text, strlen(text) + 1); }

void mpi_free(struct mpi_bytes *bytes) {
    free(bytes->data);
    *bytes = (struct mpi_bytes){0};
}

size_t mpi_begin(struct mpi_bytes *bytes, enum mpi_kind kind) {
    size_t begin = bytes->size;
    mpi_put_number(bytes, kind);
    mpi_put_number(bytes, 0);
    return begin;
}

void mpi_end(struct mpi_bytes *bytes, size_t begin) {
    uint32_t size = htonl((uint32_t)(bytes->size - begin - HEADER));
    memcpy(bytes->data + begin + sizeof size, &size, sizeof size);
}

int mpi_next(const struct mpi_bytes *bytes, size_t most, enum mpi_kind *kind, const char **content, size_t *size) {
    uint32_t header[2];
    if (bytes->size < HEADER) return 0;
    memcpy(header, bytes->data, HEADER);
    *kind = (enum mpi_kind)ntohl(header[0]);
    *size = ntohl(header[1]);
    if (*size > most) return -1;
    if (bytes->size - HEADER < *size) return 0;
    *content = bytes->data + HEADER;
    return 1;
}

void mpi_drop(struct mpi_bytes *bytes, size_t content) {
    size_t gone = HEADER + content;
    memmove(bytes->data, bytes->data + gone, bytes->size - gone);
    bytes->size -= gone;
}

struct mpi_reader mpi_read(const char *content, size_t size) { return (struct mpi_reader){content, content + size, false}; }

const char *mpi_get(struct mpi_reader *reader, size_t size) {
    if (reader->is_bad || (size_t)(reader->end - reader->at) < size) {
        reader->is_bad = true;
        return "";
    }
    const char *found = reader->at;
    reader->at += size;
    return found;
}

uint32_t mpi_get_number(struct mpi_reader *reader) {
    uint32_t number = 0;
    const char *found = mpi_get(reader, sizeof number);
    if (!reader->is_bad) memcpy(&number, found, sizeof number);
    return ntohl(number);
}

const char *mpi_get_text(struct mpi_reader *reader) {
    size_t size = reader->is_bad ? 0 : strnlen(reader->at, (size_t)(reader->end - reader->at));
    if (!reader->is_bad && reader->at + size == reader->end) reader->is_bad = true;
    return reader->is_bad ? "" : mpi_get(reader, size + 1);
}

int mpi_read_ranks(const char *text, uint32_t *ranks, uint32_t most) {
    uint32_t count = 0;
    while (*text) {
        char *end;
        if (*text < '0' || *text > '9') return -1;
        unsigned long rank = strtoul(text, &end, 10);
        if (rank >= most || count == most || (count && rank <= ranks[count - 1])) return -1;
        ranks[count++] = (uint32_t)rank;
        if (*end == ',' && end[1]) end++;
        else if (*end) return -1;
        text = end;
    }
    return (int)count;
}

bool mpi_is_daemon(const char *command) {
    const char *slash = strrchr(command, '/'), *name = slash ? slash + 1 : command;
    return strcmp(name, "prted") == 0 || strcmp(name, "orted") == 0;
}

int mpi_send(int socket, const void *data, size_t size) {
    while (size) {
        ssize_t sent = send(socket, data, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return -1;
        data = (const char *)data + sent;
        size -= (size_t)sent;
    }
    return 0;
}

int mpi_receive(int socket, void *data, size_t size) {
    while (size) {
        ssize_t got = recv(socket, data, size, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return -1;
        data = (char *)data + got;
        size -= (size_t)got;
    }
    return 0;
}
