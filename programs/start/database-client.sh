# Sourced by what talks to the accounting database, the cluster's own or another: how to reach it, from the environment and the Secret.
database_host=$SLIPWAY_MARIADB_HOST
database_port=${SLIPWAY_MARIADB_PORT:-3306}
database_user=${SLIPWAY_MARIADB_USER:-slurm}
database=${SLIPWAY_MARIADB_DATABASE:-slurm_acct_db}

write_client() { # FILE: the settings of MariaDB's client programs, readable for this user only
  local password
  password=$(</etc/slipway/mariadb/password)
  (
    umask 077
    printf '[mariadb-client]\nconnect-timeout=3\n[client]\nhost=%s\nport=%s\nuser=%s\npassword="%s"\n' \
      "$database_host" "$database_port" "$database_user" "${password//\\/\\\\}" >"$1"
    case ${SLIPWAY_MARIADB_TLS:-} in
      '') ;;
      off) printf 'skip-ssl\n' >>"$1" ;;
      *) printf 'ssl-ca=%s\nssl-verify-server-cert\n' "$SLIPWAY_MARIADB_TLS" >>"$1" ;;
    esac
  )
}

wait_for_database() { # CLIENT-SETTINGS
  local answer tries=0
  until answer=$(mariadb --defaults-file="$1" --execute 'SELECT 1' "$database" 2>&1); do
    ((tries++ % 10)) || say "waiting for the database at $database_host: $answer"
    sleep 1 & wait $!
  done
}
