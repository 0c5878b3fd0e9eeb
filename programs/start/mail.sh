#!/bin/sh
# MailProg: slurmctld runs it, as its user, for each mail about a job, with "-s SUBJECT ADDRESS" and variables about the job.
cd /opt/slipway && exec python3 -EsSB -m programs.mail.accept "$@"
