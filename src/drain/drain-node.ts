/** Drains one node: evicts its pods until no pod that a drain evicts is left. */
import { keyOf, type Pod, pods } from '../kube/resources.ts';
import { createInformer, type Informer } from '../kube/watch/informer.ts';
import { rfc3339 } from '../util/clock.ts';
import { messageOf } from '../util/errors.ts';
import { sameJson } from '../util/json.ts';
import { onAbort } from '../util/waits.ts';
import { describeAwaited, findOverdue } from './budgets.ts';
import { type EvictionParts, startEvictions } from './evictions.ts';
import { podRulesOf } from './pod-rules.ts';
import {
  controllerOf,
  type DrainOptions,
  daemonSetsOf,
  describeRefusedPods,
  isJobPod,
  type RefusedPod,
  sortPods,
} from './pods.ts';
import { waitForDetach } from './volumes.ts';

export interface DrainProgress {
  /** The number of pods that are left, including terminating pods. It is 0 until the pods are counted. */
  readonly left: number;
  /** The first of these pods in alphabetical order, as `namespace/name`. It is absent until the pods are counted. */
  readonly pods?: readonly string[];
  /** A sentence for people that says which pods are blocked and why. It is absent if no pod is blocked. */
  readonly blockedBy?: string;
  /** The PodDisruptionBudgets that block pods, as `namespace/name`. Only a preview knows them. */
  readonly budgets?: readonly string[];
  /** A sentence for people that says who evicts which pods by EvictionRequests. Nothing blocks these pods. */
  readonly waitingFor?: string;
  /** A clause that says which volumes are still attached. It is present only after the last pod is gone. */
  readonly detaching?: string;
}

/** Returns true if nothing is left to wait for. */
export function isDrained({ left, detaching }: DrainProgress): boolean {
  return left === 0 && detaching === undefined;
}

/** The most pods that the sentence about the progress names, because a longer list is hard to read. */
const MOST_NAMES = 5;

/**
 * Returns the progress of a drain: the number of pods that are left, the names of the first of these pods, and the
 * texts about what blocks them as one text.
 */
export function progressOf(
  left: readonly Pod[],
  ...blocks: readonly (string | undefined)[]
): DrainProgress {
  const blockedBy = blocks.filter((block) => block !== undefined).join('; ');
  const named = left.map(keyOf).toSorted().slice(0, MOST_NAMES);
  return {
    left: left.length,
    ...(named.length === 0 ? {} : { pods: named }),
    ...(blockedBy === '' ? {} : { blockedBy }),
  };
}

/**
 * Returns a sentence such as `2 pods are left on node n1 (default/a, default/b): what blocks them`. Without `node` the
 * sentence does not say where.
 */
export function describeProgress(
  { left, pods: named = [], blockedBy, waitingFor, detaching }: DrainProgress,
  node?: string,
): string {
  const where = node === undefined ? '' : ` on node ${node}`;
  if (detaching !== undefined) return `no pod is left${where}; ${detaching}`;
  const counted = left === 1 ? '1 pod is left' : `${left} pods are left`;
  const more = left > named.length ? ` and ${left - named.length} more` : '';
  const names = named.length === 0 ? '' : ` (${named.join(', ')}${more})`;
  const why = [blockedBy, waitingFor].filter((each) => each !== undefined).join('; ');
  return `${counted}${where}${names}${why === '' ? '' : `: ${why}`}`;
}

/**
 * The parts that the caller must provide for a drain. When `abort` aborts, the drain ends. Pods that are already
 * evicted stay evicted.
 */
export interface DrainParts extends Omit<EvictionParts, 'options' | 'node' | 'onChange'> {
  readonly onChange?: (progress: DrainProgress) => void;
}

/**
 * The error of a drain whose options forbid to evict some pods of the node. The message names all these pods, and the
 * fields that would allow their eviction.
 */
export class DrainRefusedError extends Error {
  override readonly name = 'DrainRefusedError';

  constructor(refused: readonly RefusedPod[], options: Pick<DrainOptions, 'fields'>) {
    super(describeRefusedPods(refused, options));
  }
}

/**
 * Resolves once the node has no pod left that a drain evicts, and their volumes are detached. It has no deadline. Rejects with a DrainRefusedError, or
 * with the reason of `abort`. Cordon the node first, or new pods are scheduled to it.
 */
export async function drainNode(
  name: string,
  options: DrainOptions,
  parts: DrainParts,
): Promise<void> {
  const ending = new AbortController();
  const abort = AbortSignal.any([parts.abort, ending.signal]);
  const { client, clock, random } = parts;
  const log = parts.log.child({ node: name });
  const fieldSelector = `spec.nodeName=${name}`;
  const view = createInformer(client, pods, {
    fieldSelector,
    firstList: 'paged',
    clock,
    random,
    log,
  });
  const following = view.run(abort);
  const drain = drainOf(view, options, { ...parts, node: name, log, abort });
  try {
    await view.whenSynced(abort);
    await drain.run();
    const { detachMs } = options;
    const onWait = (detaching: string): void => parts.onChange?.({ left: 0, detaching });
    const volumeParts = { ...parts, log, abort, onWait, pods: () => view.list() };
    if (detachMs !== undefined) await waitForDetach(name, detachMs, volumeParts);
  } finally {
    ending.abort();
    // The drain settles only when its watch and its evictions have ended, so that no request is sent after that.
    await Promise.all([following, drain.ended()]);
  }
}

/** If the labels of a namespace could not be read, they are read again after this number of milliseconds. */
const AGAIN_MS = 5_000;

interface RunningDrain {
  /** Resolves once the node is drained. */
  readonly run: () => Promise<void>;
  /** Resolves once no eviction runs any more. */
  readonly ended: () => Promise<void>;
}

/**
 * The position of a pod in the order of evictions. Pods are sorted by the turn of their rule, and then by their
 * priority.
 */
type Turn = readonly [turn: number, priority: number];

function compareTurns([turn, priority]: Turn, [otherTurn, otherPriority]: Turn): number {
  return turn - otherTurn || priority - otherPriority;
}

/**
 * A drain can wait before its first eviction, so that load balancers stop sending traffic to the node. Returns the
 * number of milliseconds until this wait ends, and a text for people about the wait.
 */
function graceOf({ graceMs = 0 }: DrainOptions, clock: DrainParts['clock']) {
  const end = clock.monotonic() + graceMs;
  return {
    leftMs: () => Math.max(0, end - clock.monotonic()),
    text: `waiting until ${rfc3339(clock.now() + graceMs)} for load balancers to exclude the node`,
  };
}

interface OwnParts extends DrainParts {
  /** The name of the node. */
  readonly node: string;
}

function withWaiting(progress: DrainProgress, waitingFor: string | undefined): DrainProgress {
  return waitingFor === undefined ? progress : { ...progress, waitingFor };
}

/** Checks the node again after each change of its pods, and after each answer to an eviction. */
function drainOf(view: Informer<Pod>, options: DrainOptions, parts: OwnParts): RunningDrain {
  const { client, clock, abort, onChange } = parts;
  let changed = Promise.withResolvers<void>();
  const wake = (): void => changed.resolve();
  const daemonSets = daemonSetsOf(client);
  const rules = podRulesOf(client, options.podRules);
  const turnOf = (pod: Pod): Turn => [
    rules.ruleFor(pod)?.turn ?? 0,
    options.byPriority === true ? (pod.spec?.priority ?? 0) : 0,
  ];
  const jobsEnd = clock.monotonic() + (options.jobsWaitMs ?? 0);
  const jobsUntil = rfc3339(clock.now() + (options.jobsWaitMs ?? 0));
  const grace = graceOf(options, clock);
  const evictions = startEvictions({ ...parts, options, onChange: wake });
  const tooOften = returningPods();
  let stopTimer = (): void => undefined;
  let reported: DrainProgress | undefined;
  const report = (progress: DrainProgress, nextInMs?: number): void => {
    stopTimer();
    stopTimer = nextInMs === undefined ? () => undefined : clock.schedule(nextInMs, wake);
    if (sameJson(progress, reported)) return;
    reported = progress;
    onChange?.(progress);
  };
  const isEmpty = async (): Promise<boolean> => {
    abort.throwIfAborted();
    // This promise is made before the check, so that a change during the check causes another check.
    changed = Promise.withResolvers<void>();
    await daemonSets.learn(view.list(), abort);
    const unknown = await rules.learn(view.list(), abort).catch(messageOf);
    if (unknown !== undefined) {
      report(
        progressOf(view.list(), `a namespace cannot be read, so the drain waits: ${unknown}`),
        AGAIN_MS,
      );
      return false;
    }
    const jobsLeftMs = Math.max(0, jobsEnd - clock.monotonic());
    const current = { ...options, jobsWaitMs: jobsLeftMs };
    const sorted = sortPods(view.list(), current, { ...daemonSets, ...rules });
    // The drain is refused before it evicts any pod, and also later if such a pod is scheduled to the node.
    if (sorted.refused.length > 0) throw new DrainRefusedError(sorted.refused, options);
    const returning = tooOften(sorted.evict);
    const evict = sorted.evict.filter((pod) => !returning.has(pod));
    const left = [...evict, ...sorted.ending, ...sorted.awaited];
    const [first] = left.map(turnOf).toSorted(compareTurns);
    const graceLeftMs = evict.length === 0 ? 0 : grace.leftMs();
    const isTurn = (pod: Pod): boolean =>
      first !== undefined && compareTurns(turnOf(pod), first) === 0;
    evictions.want(graceLeftMs > 0 ? [] : evict.filter(isTurn), sorted.ending);
    const { text, nextInMs } = findOverdue(sorted.ending, clock.now());
    const isJob = (pod: Pod): boolean => jobsLeftMs > 0 && isJobPod(pod) && !rules.ruleFor(pod);
    const { jobs = [], others = [] } = Object.groupBy(sorted.awaited, (pod) =>
      isJob(pod) ? 'jobs' : 'others',
    );
    const awaited = [describeAwaited(others), describeAwaited(jobs, jobsUntil)];
    const graceText = graceLeftMs > 0 ? grace.text : undefined;
    const nextChecks = [
      nextInMs ?? [],
      jobs.length > 0 ? jobsLeftMs : [],
      graceLeftMs > 0 ? graceLeftMs : [],
    ].flat();
    const progress = progressOf(left, graceText, evictions.blockedBy(), ...awaited, text);
    report(
      withWaiting(progress, evictions.waitingFor()),
      nextChecks.length === 0 ? undefined : Math.min(...nextChecks),
    );
    return left.length === 0;
  };
  return {
    ended: async () => await evictions.ended(),
    async run() {
      using cleanUp = new DisposableStack();
      cleanUp.defer(view.addHandler({ added: wake, updated: wake, deleted: wake }));
      cleanUp.use(onAbort(abort, wake));
      cleanUp.defer(() => stopTimer());
      while (!(await isEmpty())) await changed.promise;
    },
  };
}

/**
 * The number of returns after which a pod stays on the node. A pod returns if its controller creates it again on the same node. A pod that
 * fits on no other node would return for ever.
 */
const MAX_RETURNS = 3;

/** Finds the pods that were created again too often. The caller must call it at each check of the node. */
function returningPods() {
  /**
   * The key is the uid of a pod. The value contains the controller that would create the pod again, and how many pods
   * of that controller were evicted one after another before this pod.
   */
  const present = new Map<string, { readonly creator: string; readonly round: number }>();
  /**
   * The key is the uid of a controller, or the key of a pod without a controller. The value counts how often a pod was
   * evicted and created again.
   */
  const rounds = new Map<string, number>();
  const roundOf = (pod: Pod): number => {
    const { uid = '' } = pod.metadata;
    const creator = controllerOf(pod)?.uid ?? keyOf(pod);
    return present.getOrInsert(uid, { creator, round: rounds.get(creator) ?? 0 }).round;
  };
  return (pods: readonly Pod[]): ReadonlySet<Pod> => {
    const here = new Set(pods.map(({ metadata }) => metadata.uid));
    for (const [uid, { creator, round }] of present) {
      if (here.has(uid)) continue;
      present.delete(uid);
      rounds.set(creator, Math.max(rounds.get(creator) ?? 0, round + 1));
    }
    return new Set(pods.filter((pod) => roundOf(pod) > MAX_RETURNS));
  };
}
