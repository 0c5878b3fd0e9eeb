-- Rendered by Slipway from the key slipway:cluster of the stack file Pulumi.<stack>.yaml; do not edit.
-- Refuses options that Slurm would accept here and then ignore, and warns of output that would be lost. As job_submit.lua slurmctld runs it
-- for each job, whichever client or REST sent it; as cli_filter.lua the clients run it before they submit, and srun for steps inside a job.

local NOT_SUPPORTED = 2036 -- ESLURM_NOT_SUPPORTED. Source: slurm_errno.h
local NO_VAL16, NO_VAL = 65534, 4294967294 -- what a request has that does not mention the option. Source: slurm.h

-- Receivers of news (notifications.receivers), which `--comment=notify:NAME` may name.
local RECEIVERS = {  }
-- Folders that each node and each job has for itself.
local OWN_FOLDERS = { "/tmp", "/var/tmp", "/dev/shm", "/run", "/scratch" }
-- Volumes, which outlast jobs, also where they lie below one of those.
local VOLUMES = { "/data", "/scratch" }

local function has(list, name)
  for _, each in ipairs(list) do
    if each == name then
      return true
    end
  end
  return false
end

local function unknown_receiver(comment)
  for word in string.gmatch(comment or "", "[^%s,;]+") do
    local name = string.match(word, "^notify:(.*)$")
    if name and not has(RECEIVERS, name) then
      local known = #RECEIVERS > 0 and "There are: " .. table.concat(RECEIVERS, ", ") .. "." or "This cluster has none: leave the word out."
      return string.format("--comment=notify:%s: there is no receiver of that name. %s", name, known)
    end
  end
end

local function refusal(container, disk)
  if container and container ~= "" then
    return "--container: no OCI runtime is configured here, and the program would run outside the container. Use --container-image."
  end
  if disk and disk ~= 0 and disk ~= NO_VAL then
    return "--tmp: no node declares the size of its local disk. Leave the option out; administrators declare it with TmpDisk."
  end
end

local function judge(job)
  local why = refusal(job.container, job.pn_min_tmp_disk) or unknown_receiver(job.comment)
  if why then
    slurm.log_user("%s", why)
    return NOT_SUPPORTED
  end
  if job.mail_type and job.mail_type ~= 0 and job.mail_type ~= NO_VAL16 then
    job.mail_type = 0
    slurm.log_user("--mail-type has no effect: this cluster sends no mail. sacct shows how a job ended.")
  end
  return slurm.SUCCESS
end

-- Without AccountingStorageEnforce=qos Slurm runs a job with an unknown QOS in the default one. What sacctmgr cannot tell is accepted.
local function unknown_qos(given)
  if not given or given == "" then
    return nil
  end
  local answer = io.popen("sacctmgr --immediate --noheader --parsable2 show qos format=name 2>/dev/null </dev/null")
  local names = {}
  for line in answer and answer:lines() or function() end do
    names[#names + 1] = line
  end
  if answer then
    answer:close()
  end
  for name in string.gmatch(string.lower(given), "[^,]+") do
    if #names > 0 and not has(names, name) then
      return string.format("--qos=%s: there is no such QOS. There are: %s.", name, table.concat(names, ", "))
    end
  end
end

local function within(folders, path)
  for _, folder in ipairs(folders) do
    if path == folder or string.sub(path, 1, #folder + 1) == folder .. "/" then
      return folder
    end
  end
end

-- The folder of the job's own that a path is in, and that is gone when the job ends; nil for any other path.
local function lost(path, folder)
  if string.sub(path, 1, 1) ~= "/" then
    path = folder .. "/" .. path
  end
  return not within(VOLUMES, path) and within(OWN_FOLDERS, path) or nil
end

local function warn_of_lost_output(options)
  local folder = options["chdir"] or os.getenv("PWD") or "/"
  for _, name in ipairs({ "output", "error" }) do
    local path = options[name] or (name == "output" and "slurm-%j.out")
    local own = path and lost(path, folder)
    if own then
      slurm.log_info("warning: the job's %s goes to %s, which each job has for itself and loses at its end. Submit from your home, "
        .. "or give --%s a path there.", name, own, name)
    end
  end
end

-- Slurm 26.05 tells a batch job SLURM_TRES_PER_TASK alone; launch scripts, those of Ray among them, read the older variable. srun reads both
-- and refuses a type that only one of them has. The older one cannot name several types.
local function tell_gpus_per_task(job)
  local wanted = job.tres_per_task or ""
  local _, types = string.gsub(wanted, "gres[/:]gpu", "")
  local kind, gpus = string.match(wanted, "gres[/:]gpu:?([^,=:]*)[=:](%d+)")
  if gpus and types == 1 and (job.script or "") ~= "" then
    job.environment["SLURM_GPUS_PER_TASK"] = kind == "" and gpus or kind .. ":" .. gpus
  end
end

function slurm_job_submit(job, partitions, uid)
  -- --requeue, which a job's record does not tell from the default; slurm/job_marks.py reads it. Users cannot set AdminComment.
  if job.requeue == 1 and (job.admin_comment or "") == "" then
    job.admin_comment = "[slipway: requeue]"
  end
  tell_gpus_per_task(job)
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
  if options["x11"] and options["x11"] ~= "none" and options["x11"] ~= "unset" then
    why = "--x11: this cluster has no X11 forwarding. Use a notebook, or forward a port: ssh -L."
  end
  why = why or unknown_receiver(options["comment"])
  why = why or unknown_qos(options["qos"])
  if why then
    slurm.log_error("%s", why)
    return slurm.ERROR
  end
  if options["type"] == "sbatch" then
    warn_of_lost_output(options)
  end
  if options["mpi"] and string.match(options["mpi"], "^pmix") then
    options["mpi"] = "pmi2" -- Slurm has no plugin called pmix here; every step of several tasks has a PMIx server (docs/use/logins.md)
  end
  return slurm.SUCCESS
end

-- srun has its step now, and the addresses of the job's nodes, which slurmctld does not change with the job: images/slurm/root/spank.c.
-- An older plugin lacks the function.
function slurm_cli_post_submit(component, job, step)
  local forget = package.loadlib("/usr/lib/slipway/slipway_root.so", "slipway_forget_addresses")
  if forget then
    forget()
  end
  return slurm.SUCCESS
end

return slurm.SUCCESS
