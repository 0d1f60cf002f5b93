#!/usr/bin/env bash
# What `submit --kubernetes` writes fits the schemas of Kubernetes and of the MPI operator, and says what it should: who is
# started again, GPUs, shared memory, volumes, time for the last checkpoint. The config inside is the one that was given.
source tests/lib.sh
fork_starts
python_tools kubernetes kubernetes-validate || { echo "skipped"; exit 77; }
PATH=$tools:$PATH
cat >"$scratch/site.yaml" <<'YAML'
container: registry.example.org/chexnet-train:cuda13
mounts: ['nih:/data:ro', 'runs:/runs']
cpus_per_rank: 8
YAML
sed "s|$phantom|/data|" "$small" >"$scratch/pod.yaml"
submit() { "$forked" submit --kubernetes "$scratch/pod.yaml" --site "$scratch/site.yaml" --set "run.name=Chest 1" --dry-run "$@"; }
asked() { python3 -c "
import sys, yaml
documents = list(yaml.safe_load_all(open('$scratch/out.yaml')))
config, job = documents[0], documents[-1]
spec = job['spec']
pod = spec['template']['spec'] if 'template' in spec else None
run = yaml.safe_load(list(config['data'].values())[-1])['run']
assert $1, $1"; }

submit --gpus-per-node 2 --out /runs/one --max-requeues 7 --set launch.stop_margin_s=200 >"$scratch/out.yaml" || exit 1
check "one host: an indexed Job" [ "$(tests/app/check_manifest.py "$scratch/out.yaml" | sed 's/config-[0-9a-f]\+$/config-SUM/' | tr '\n' ' ')" = "ConfigMap chest-1-config-SUM Job chest-1 " ]
check "75 starts another pod, so many times" asked "spec['backoffLimit'] == 7 and spec['podFailurePolicy']['rules'][1] == {'action': 'Count', 'onExitCodes': {'containerName': 'train', 'operator': 'In', 'values': [75]}}"
check "any other code ends the job" asked "spec['podFailurePolicy']['rules'][2] == {'action': 'FailJob', 'onExitCodes': {'containerName': 'train', 'operator': 'NotIn', 'values': [75]}}"
check "a moved pod is no failure" asked "spec['podFailurePolicy']['rules'][0]['action'] == 'Ignore'"
check "GPUs and cores" asked "pod['containers'][0]['resources']['limits'] == {'cpu': '16', 'nvidia.com/gpu': '2'}"
check "shared memory of its own" asked "pod['volumes'][1] == {'name': 'shm', 'emptyDir': {'medium': 'Memory', 'sizeLimit': '4Gi'}} and pod['hostIPC'] is False"
check "data can be read alone, runs be written" asked "[m.get('readOnly', False) for m in pod['containers'][0]['volumeMounts'][2:]] == [True, False]"
check "time for the last checkpoint" asked "pod['terminationGracePeriodSeconds'] == 230"
check "not root" asked "pod['securityContext']['runAsNonRoot'] is True"
python3 -c "import yaml; print(list(yaml.safe_load_all(open('$scratch/out.yaml')))[0]['data']['0.yaml'], end='')" >"$scratch/inside.yaml"
"$program" train "$scratch/pod.yaml" --set "run.name=Chest 1" --set launch.stop_margin_s=200 --out /runs/one --print-config >"$scratch/wanted.yaml" || exit 1
check "the config inside is the one that was given" cmp "$scratch/inside.yaml" "$scratch/wanted.yaml"

submit --out /runs/s --sweep train.lr=1e-3,3e-4 --seeds 2 >"$scratch/out.yaml" || exit 1
check "a sweep: a Job with an index for each run" [ "$(tests/app/check_manifest.py "$scratch/out.yaml" | wc -l)" = 2 ]
check "each run has its config and its restarts" asked "spec['completions'] == 4 and spec['backoffLimitPerIndex'] == 20 and len(config['data']) == 4 and run['seed'] == 2 and run['dir'] == '/runs/s/lr=3e-4_seed=2'"

submit --nodes 3 --gpus-per-node 2 --set train.batch=12 --out /runs/two --time 10:00:00 --partition gpu-queue >"$scratch/out.yaml" || exit 1
check "several hosts: an MPIJob" [ "$(tests/app/check_manifest.py "$scratch/out.yaml" | tail -n 1)" = "MPIJob chest-1" ]
check "hosts, ranks, the limit and Kueue's queue" asked "spec['slotsPerWorker'] == 2 and spec['mpiReplicaSpecs']['Worker']['replicas'] == 3 and spec['runPolicy']['activeDeadlineSeconds'] == 36000 and job['metadata']['labels']['kueue.x-k8s.io/queue-name'] == 'gpu-queue'"
check "75 starts the launcher again, any other code ends it" asked "spec['mpiReplicaSpecs']['Launcher']['template']['spec']['containers'][0]['restartPolicyRules'] == [{'action': 'Restart', 'exitCodes': {'operator': 'In', 'values': [75]}}] and spec['runPolicy']['backoffLimit'] == 0"
check "an unknown key would be found" bash -c "sed 's/slotsPerWorker/slotsPerWorkers/' '$scratch/out.yaml' >'$scratch/wrong.yaml'; ! tests/app/check_manifest.py '$scratch/wrong.yaml' >/dev/null 2>&1"
submit --nodes 2 --set train.batch=12 --seeds 2 --out /runs/three >"$scratch/out.yaml" || exit 1
check "a sweep over several hosts: an MPIJob for each run" [ "$(tests/app/check_manifest.py "$scratch/out.yaml" | tail -n 2 | tr '\n' ' ')" = "MPIJob chest-1-0 MPIJob chest-1-1 " ]

mkdir "$scratch/bin"
# Of a name that is there already create says so.
cat >"$scratch/bin/kubectl" <<KUBECTL
#!/bin/sh
case "\$1 \$2 \$3" in
  "apply --server-side -f") cp "\$4" $scratch/applied && echo configmap/x serverside-applied ;;
  "create -f "*) cp "\$3" $scratch/created && if [ -e $scratch/job ]; then echo "Error: jobs.batch already exists" >&2; exit 1; else touch $scratch/job; echo job.batch/chest-1 created; fi ;;
  *) exit 1 ;;
esac
KUBECTL
chmod +x "$scratch/bin/kubectl"
PATH=$scratch/bin:$PATH "$program" submit --kubernetes "$scratch/pod.yaml" --site "$scratch/site.yaml" --out /runs/one >"$scratch/out.txt" 2>/dev/null
check "without --dry-run kubectl gets it" bash -c "grep -qx 'job.batch/chest-1 created' '$scratch/out.txt' && cat '$scratch/applied' '$scratch/created' >'$scratch/both' && tests/app/check_manifest.py '$scratch/both' >/dev/null"
name_of() { python3 -c "import yaml; print(next(yaml.safe_load_all(open('$scratch/applied')))['metadata']['name'])"; }
first=$(name_of)
rm "$scratch/job"  # as `kubectl delete job` does: the ConfigMap stays
PATH=$scratch/bin:$PATH "$program" submit --kubernetes "$scratch/pod.yaml" --site "$scratch/site.yaml" --out /runs/one --set train.lr=0.5 >"$scratch/out.txt" 2>/dev/null
second=$(name_of)
check "another config is another ConfigMap, which the job reads" bash -c "[ '$second' != '$first' ] && grep -q 'name: $second}' '$scratch/created'"
PATH=$scratch/bin:$PATH "$program" submit --kubernetes "$scratch/pod.yaml" --site "$scratch/site.yaml" --out /runs/one >"$scratch/out.txt" 2>"$scratch/err.txt"; rc=$?
check "a job that is there is not replaced, and it is told" [ "$rc $(grep -c 'kubectl create.* failed, see above' "$scratch/err.txt") $(grep -c serverside-applied "$scratch/out.txt")" = "5 1 1" ]
check "a run folder in an object store needs no --out" "$program" submit --kubernetes "$scratch/pod.yaml" --site "$scratch/site.yaml" --set run.dir=s3://bucket/one --dry-run

refused 2 "is in none of the pod's volumes" submit --kubernetes "$small" --site "$scratch/site.yaml" --out /runs/one --dry-run
refused 2 "runs/run is in none of the pod's volumes" submit --kubernetes "$scratch/pod.yaml" --site "$scratch/site.yaml" --dry-run
refused 2 "needs an image of a registry" submit --kubernetes "$scratch/pod.yaml" --mount nih:/data --mount runs:/runs --out /runs/one --dry-run
refused 2 "needs the volumes" submit --kubernetes "$scratch/pod.yaml" --container x/y --out /runs/one --dry-run
refused 2 "is no name of one" submit --kubernetes "$scratch/pod.yaml" --container x/y --mount /data --out /data/one --dry-run
refused 2 "has queues of Kueue for partitions" submit --kubernetes "$scratch/pod.yaml" --site "$scratch/site.yaml" --out /runs/one --partition 'gpu queue' --dry-run
refused 2 "registry, which 'R/X Y:1' is not" submit --kubernetes "$scratch/pod.yaml" --site "$scratch/site.yaml" --out /runs/one --container 'R/X Y:1' --dry-run
refused 2 "which 'registry.example.org#team/x:1' is not" submit --kubernetes "$scratch/pod.yaml" --site "$scratch/site.yaml" --out /runs/one --container 'registry.example.org#team/x:1' --dry-run
refused 2 "mounts /data/ twice" submit --kubernetes "$scratch/pod.yaml" --site "$scratch/site.yaml" --out /runs/one --mount b:/data/ --dry-run
refused 2 "mounts /dev/shm twice, or over" submit --kubernetes "$scratch/pod.yaml" --site "$scratch/site.yaml" --out /runs/one --mount b:/dev/shm --dry-run
refused 2 "privacy.key=/FILE in a volume" submit --kubernetes "$scratch/pod.yaml" --site "$scratch/site.yaml" --out /runs/one --set privacy.ids=pseudonym --dry-run
submit --out /runs/one --set 'data.images=[s3://xrays/images]' >"$scratch/out.yaml" 2>"$scratch/err.txt"
check "data in an object store gets no keys, and it is said" grep -qF 's3://xrays/images is in an object store, and the pods get no keys for it. Hint: a Secret' "$scratch/err.txt"
submit --out /runs/one --set 'data.images=[s3://xrays/images]' --set data.s3.instance_metadata=true >"$scratch/out.yaml" 2>"$scratch/err.txt"
check "but where the machine gives them" eval '! grep -q "no keys" "$scratch/err.txt"'
printf 'setup: [module load x]\nlines: ["--qos=high"]\nlauncher: srun\n' | cat "$scratch/site.yaml" - >"$scratch/slurm_site.yaml"
check "what a site file has for scripts is passed over" "$program" submit --kubernetes "$scratch/pod.yaml" --site "$scratch/slurm_site.yaml" --out /runs/one --dry-run
refused 2 "starts ranks by mpirun" submit --kubernetes "$scratch/pod.yaml" --site "$scratch/site.yaml" --out /runs/one --launcher srun --dry-run
refused 2 "those of 700 runs are larger" submit --kubernetes "$scratch/pod.yaml" --site "$scratch/site.yaml" --out /runs/one --seeds 700 --dry-run
refused 2 "--kubernetes excludes --account" submit --kubernetes "$scratch/pod.yaml" --site "$scratch/site.yaml" --out /runs/one --account chest --dry-run
refused 2 "takes no --line" submit --kubernetes "$scratch/pod.yaml" --site "$scratch/site.yaml" --out /runs/one --line x --dry-run
finish
