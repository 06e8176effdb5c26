/** Rolls a version out to MachineDeployments of machine-controller. Each roll-out starts with a canary, and stops at the first failure. */
import type { KubeClient } from '../../../kube/client.ts';
import * as kube from '../../../kube/resources.ts';
import { matchesLabels } from '../../../kube/selectors.ts';
import { describeProblem, ifAllowed, ifFound, ifUnchanged } from '../../../kube/status-error.ts';
import { sleep } from '../../../util/clock.ts';
import { compareVersionTexts } from '../../../util/version.ts';
import { type Finding, hard, warn } from '../../../versions/findings.ts';
import { judgeVersions } from '../../../versions/version-rules.ts';
import type { AddonTools } from './addons.ts';

interface MachineSpec {
  versions?: { kubelet?: string };
}

export interface Pool extends kube.KubeObject {
  spec: {
    replicas?: number;
    paused?: boolean;
    selector?: kube.LabelSelector;
    strategy?: { rollingUpdate?: { maxSurge?: number | string; maxUnavailable?: number | string } };
    template: { spec: MachineSpec };
  };
  status?: {
    observedGeneration?: number;
    replicas?: number;
    updatedReplicas?: number;
    availableReplicas?: number;
  };
}

interface Machine extends kube.KubeObject {
  spec: MachineSpec;
  status?: { nodeRef?: { name: string }; errorReason?: string; errorMessage?: string };
}

const machineDeployments = kube.namespaced<Pool>('cluster.k8s.io/v1alpha1', 'MachineDeployment');
const machines = kube.namespaced<Machine>('cluster.k8s.io/v1alpha1', 'Machine');
const namespace = 'kube-system';
/**
 * The annotation of a MachineDeployment with the version that Refit rolls out. machine-controller copies the annotation to a
 * MachineSet, where it stays.
 */
const OURS = 'upgrade.refit.dev/machines';
/**
 * The field manager in `metadata.managedFields` that distinguishes Refit's pause from the pauses of other tools or
 * people.
 */
const FIELD_MANAGER = 'refit-kubeadm';
const ASK_AGAIN_MS = 1000;
/** The most minutes to wait for one more ready Machine: twice the time in which machine-controller expects a Machine to join. */
const PATIENCE_MIN = 30;
const PAUSE_ATTEMPTS = 10;
const LAST_PAUSE_WITHIN_MS = 10_000;

/**
 * Returns the MachineDeployments in the order of their names; undefined if machine-controller is
 * not installed, or the right to list them is missing.
 */
export async function listPools(
  client: KubeClient,
  abort: AbortSignal,
): Promise<Pool[] | undefined> {
  const found = await ifAllowed(ifFound(client.listAll(machineDeployments, { namespace, abort })));
  return found?.items.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
}

export function poolVersion({ spec }: Pool): string {
  return spec.template.spec.versions?.kubelet ?? '';
}

/** Returns true if Refit began to roll out a version and has not finished the roll-out. */
export function isBegun({ metadata }: Pool): boolean {
  return metadata.annotations?.[OURS] !== undefined;
}

function isPausedByOthers({ metadata, spec }: Pool): boolean {
  const managers = kube.managersOf(metadata, 'paused');
  const isOurs = managers.length > 0 && managers.every((manager) => manager === FIELD_MANAGER);
  return spec.paused === true && !isOurs;
}

export function poolsToRoll(pools: readonly Pool[], target: string): Pool[] {
  return pools.filter((pool) => {
    const order = compareVersionTexts(poolVersion(pool), target);
    return (order < 0 || (order === 0 && isBegun(pool))) && !isPausedByOthers(pool);
  });
}

/**
 * Returns findings about the MachineDeployments. Their versions must follow the rules for kubelets when all API servers
 * have the version `target`.
 */
export function poolFindings(pools: readonly Pool[] | undefined, target: string): Finding[] {
  const found =
    'MachineDeployments cannot be read: machine-controller is not installed, or a right is missing';
  const remedy =
    'grant what `refit install rights kubeadm` prints, or leave --upgrade-machine-deployments out';
  if (pools === undefined) return [hard('machines', found, remedy)];
  const kubelets = pools.map((pool) => {
    // A version that cannot be parsed counts as older than the target.
    const isThere = compareVersionTexts(poolVersion(pool), target) >= 0;
    const next = isThere ? {} : { target, replaced: true };
    return { name: `MachineDeployment ${pool.metadata.name}`, version: poolVersion(pool), ...next };
  });
  const paused = pools.filter(isPausedByOthers).map(({ metadata }) => metadata.name);
  const bold = poolsToRoll(pools, target).filter(({ spec }) => {
    const { maxSurge = 1, maxUnavailable = 0 } = spec.strategy?.rollingUpdate ?? {};
    return maxSurge !== 1 || maxUnavailable !== 0;
  });
  const before = 'may get several Machines, or lose old ones, before its canary is Ready';
  const cure = 'maxSurge: 1 and maxUnavailable: 0 prevent that';
  return [
    ...judgeVersions({ apiServers: [target], kubelets }),
    ...paused.map((name) =>
      warn('machines', `MachineDeployment ${name} stays as it is: somebody has paused it`),
    ),
    ...bold.map(({ metadata }) =>
      warn('machines', `MachineDeployment ${metadata.name} ${before}: ${cure}`),
    ),
  ];
}

/**
 * One step of the roll-out. If it has a `patch`, Refit writes the patch. If it has `left`, Refit waits, and `left`
 * counts the Machines that must still be created, become available, or be deleted. If it has neither field, the
 * roll-out stops with the message.
 */
interface PoolStep {
  readonly message: string;
  readonly patch?: { metadata?: object; spec?: object };
  readonly left?: number;
}

/**
 * Returns the next step; undefined once the roll-out is done. The step depends only on the objects in the API, so a new
 * run continues where the previous run was killed.
 */
export function nextPoolStep(
  pool: Pool,
  target: string,
  { all, hasCanary }: FoundMachines,
): PoolStep | undefined {
  const { metadata, spec, status = {} } = pool;
  const { replicas: wanted = 1, paused = false } = spec;
  if (isPausedByOthers(pool)) return { message: 'somebody else has paused it' };
  if (compareVersionTexts(poolVersion(pool), target) < 0) {
    const kubelet = poolVersion(pool).startsWith('v') ? target : target.slice(1);
    const change = {
      ...(paused && { paused: false }),
      template: { spec: { versions: { kubelet } } },
    };
    return {
      message: `gets ${target}`,
      patch: { metadata: { annotations: { [OURS]: target } }, spec: change },
    };
  }
  if (!isBegun(pool)) return undefined;
  const fresh = freshOf(all, target);
  const broken = fresh.find((machine) => machine.status?.errorReason !== undefined);
  const { errorReason, errorMessage } = broken?.status ?? {};
  if (broken) return { message: `${broken.metadata.name}: ${errorReason}: ${errorMessage}` };
  const isOpen = !hasCanary && wanted > 0;
  if (isOpen && paused && fresh.length === 0)
    return {
      message: 'was paused before its first new Machine was created, and now continues',
      patch: { spec: { paused: false } },
    };
  if (isOpen && (paused || fresh.length === 0))
    return {
      message: `waits until a first Machine is Ready at ${target}`,
      left: Number.POSITIVE_INFINITY,
    };
  // Refit pauses the roll-out only after the first new Machine exists. If the roll-out were paused earlier, the new
  // MachineSet would get no Machine.
  if (isOpen)
    return { message: 'is paused until a canary has joined', patch: { spec: { paused: true } } };
  if (paused)
    return { message: 'has a good canary and continues', patch: { spec: { paused: false } } };
  const old = all.length - fresh.length;
  const {
    replicas = 0,
    updatedReplicas = 0,
    availableReplicas = 0,
    observedGeneration = 0,
  } = status;
  const left =
    old +
    Math.max(0, wanted - Math.min(updatedReplicas, availableReplicas)) +
    Math.abs(replicas - wanted);
  if (left > 0 || observedGeneration < (metadata.generation ?? 0))
    return {
      message: `has ${updatedReplicas} of ${wanted} Machines at ${target}, and ${old} old`,
      left,
    };
  return { message: `has ${target}`, patch: { metadata: { annotations: { [OURS]: null } } } };
}

export interface PoolTools extends Pick<AddonTools, 'client' | 'writer' | 'clock' | 'abort'> {
  /** Receives a message for each change, without the name of the MachineDeployment, which the caller adds in front. */
  readonly tell: (message: string) => void;
}

/**
 * Rolls the target version out to a MachineDeployment. Resolves with the reason if the roll-out stopped, or with undefined if it is
 * done. On an abort it reports what is left to do, and rejects.
 */
export async function rollPool(
  tools: PoolTools,
  named: Pool,
  target: string,
): Promise<string | undefined> {
  const { client, clock, tell, abort } = tools;
  const told = new Set<string>();
  let pool = named;
  let last = Number.POSITIVE_INFINITY;
  let since = clock.monotonic();
  const isOver = (): boolean => clock.monotonic() - since >= PATIENCE_MIN * 60_000;
  for (;;) {
    try {
      const hadTarget = compareVersionTexts(poolVersion(pool), target) === 0;
      pool = await client.get(machineDeployments, named.metadata.name, { namespace, abort });
      if (hadTarget && compareVersionTexts(poolVersion(pool), target) !== 0)
        return `somebody has changed its version to ${poolVersion(pool)}; it ${leftAs(pool)}`;
      const step = nextPoolStep(pool, target, await look(tools, pool, target));
      if (step === undefined) return undefined;
      const { message, patch, left } = step;
      if (patch === undefined && left === undefined)
        return `${message}; it ${await pause(tools, pool, target)}`;
      const isNew = !told.has(message);
      if (isNew) tell(message);
      told.add(message);
      if (patch) pool = await write(tools, pool, patch);
      if (patch ? isNew : (left ?? 0) < last) since = clock.monotonic();
      last = left ?? last;
      if (isOver())
        return `nothing has changed for ${PATIENCE_MIN} min: it ${message}; it ${await pause(tools, pool, target)}`;
      if (patch && isNew) continue;
    } catch (error) {
      if (abort.aborted) tell(await pause(tools, pool, target));
      abort.throwIfAborted();
      const { code, message } = describeProblem(error);
      if (code !== 'REFIT_UNREACHABLE' || isOver()) return `${message}; it ${leftAs(pool)}`;
    }
    await sleep(clock, ASK_AGAIN_MS, abort).catch(() => undefined);
  }
}

function freshOf(all: readonly Machine[], target: string): Machine[] {
  return all.filter(({ spec }) => compareVersionTexts(spec.versions?.kubelet, target) === 0);
}

interface FoundMachines {
  readonly all: readonly Machine[];
  /** True if a Machine of the target version has a Node that is Ready at that version. */
  readonly hasCanary: boolean;
}

/** Reads the Machines of the MachineDeployment. */
async function look(
  { client, abort }: PoolTools,
  pool: Pool,
  target: string,
): Promise<FoundMachines> {
  const { items } = await client.listAll(machines, { namespace, abort });
  const all = items.filter(({ metadata }) => matchesLabels(pool.spec.selector, metadata.labels));
  for (const { status } of freshOf(all, target)) {
    if (!status?.nodeRef) continue;
    const node = await ifFound(client.get(kube.nodes, status.nodeRef.name, { abort }));
    const isReady = kube.readyCondition(node)?.status === 'True';
    if (isReady && compareVersionTexts(kube.kubeletVersionOf(node), target) === 0)
      return { all, hasCanary: true };
  }
  return { all, hasCanary: false };
}

/** Writes the patch, and resolves with the stored object. If others have written the object meanwhile, resolves with `pool`. */
async function write(
  { writer, abort }: PoolTools,
  pool: Pool,
  patch: PoolStep['patch'],
): Promise<Pool> {
  const { name, resourceVersion } = pool.metadata;
  const whole = { ...patch, metadata: { ...patch?.metadata, resourceVersion } };
  const options = { namespace, type: 'merge', fieldManager: FIELD_MANAGER, abort } as const;
  return (await ifUnchanged(writer.patch(machineDeployments, name, whole, options))) ?? pool;
}

/**
 * Pauses a roll-out in progress. If the user did not press Ctrl-C, it pauses the roll-out only if a new Machine exists.
 * If the user pressed Ctrl-C, it pauses the roll-out only if the canary is not ready. Resolves with a clause that says
 * what the user must still do. The clause follows the name of the MachineDeployment.
 */
async function pause(tools: PoolTools, pool: Pool, target: string): Promise<string> {
  const isAborted = tools.abort.aborted;
  const ending = isAborted ? { ...tools, abort: AbortSignal.timeout(LAST_PAUSE_WITHIN_MS) } : tools;
  let now = pool;
  try {
    for (let left = PAUSE_ATTEMPTS; left > 0; left--) {
      now = await tools.client.get(machineDeployments, pool.metadata.name, {
        namespace,
        abort: ending.abort,
      });
      if (!isBegun(now) || now.spec.paused || compareVersionTexts(poolVersion(now), target) !== 0)
        break;
      const { all, hasCanary } = await look(ending, now, target);
      if (isAborted ? hasCanary : freshOf(all, target).length === 0) break;
      await write(ending, now, { spec: { paused: true } });
    }
    return leftAs(now);
  } catch (error) {
    return `cannot be paused: ${describeProblem(error).message}; it ${leftAs(now)}`;
  }
}

function leftAs(pool: Pool): string {
  const { name } = pool.metadata;
  const unpause = `kubectl -n ${namespace} patch machinedeployment ${name} --type merge -p '{"spec":{"paused":false}}'`;
  const unpaused = isBegun(pool) ? 'continues without Refit' : 'stays as it is';
  return `${pool.spec.paused ? `stays paused, until you run ${unpause}` : unpaused}; run the same command again`;
}
