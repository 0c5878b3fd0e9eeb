-- Rendered by Slipway from the key slipway:cluster of the stack file Pulumi.<stack>.yaml; do not edit.
-- Refuses options that Slurm would accept here and then ignore. As job_submit.lua slurmctld runs it for each job, whichever client or REST
-- sent it; as cli_filter.lua srun runs it for steps inside a job, which slurmctld does not check.

local NOT_SUPPORTED = 2036 -- ESLURM_NOT_SUPPORTED. Source: slurm_errno.h
local NO_VAL16, NO_VAL = 65534, 4294967294 -- what a request has that does not mention the option. Source: slurm.h

local function refusal(container, mail, disk)
  if container and container ~= "" then
    return "--container: no OCI runtime is configured here, and the program would run outside the container. Use --container-image."
  end
  if mail and mail ~= 0 and mail ~= NO_VAL16 then
    return "--mail-type: this cluster sends no mail. Leave the option out; sacct shows how a job ended."
  end
  if disk and disk ~= 0 and disk ~= NO_VAL then
    return "--tmp: no node declares the size of its local disk. Leave the option out; administrators declare it with TmpDisk."
  end
end

local function judge(job)
  local why = refusal(job.container, job.mail_type, job.pn_min_tmp_disk)
  if why then
    slurm.log_user("%s", why)
    return NOT_SUPPORTED
  end
  return slurm.SUCCESS
end

function slurm_job_submit(job, partitions, uid)
  -- --requeue, which a job's record does not tell from the default; slurm/job_marks.py reads it. Users cannot set AdminComment.
  if job.requeue == 1 and (job.admin_comment or "") == "" then
    job.admin_comment = "[slipway: requeue]"
  end
  return judge(job)
end

function slurm_job_modify(job, record, partitions, uid)
  return judge(job)
end

function slurm_cli_setup_defaults(options, early)
  return slurm.SUCCESS
end

function slurm_cli_pre_submit(options, component)
  local why = refusal(options["container"] or options["container-id"])
  if options["get-user-env"] == "set" then -- else "unset", also with --export=NONE
    why = "--get-user-env: a user's login files are not run before the job. Leave the option out; #!/bin/bash -l runs them inside the job."
  end
  if why then
    slurm.log_error("%s", why)
    return slurm.ERROR
  end
  if options["mpi"] and string.match(options["mpi"], "^pmix") then
    options["mpi"] = "pmi2" -- Slurm has no plugin called pmix here; every step of several tasks has a PMIx server (docs/users.md)
  end
  return slurm.SUCCESS
end

function slurm_cli_post_submit(component, job, step)
  return slurm.SUCCESS
end

return slurm.SUCCESS
