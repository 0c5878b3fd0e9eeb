/* Counts the words of the files it is given: a program that an image brings. */
#include <ctype.h>
#include <stdio.h>

int main(int count, char **files) {
    for (int i = 1; i < count; i++) {
        FILE *file = fopen(files[i], "r");
        if (!file) {
            perror(files[i]);
            return 1;
        }
        long words = 0;
        for (int before = ' ', each; (each = getc(file)) != EOF; before = each) words += isspace(before) && !isspace(each);
        printf("%s has %ld words\n", files[i], words);
        fclose(file);
    }
    return 0;
}
