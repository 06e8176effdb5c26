/** Drains one node: evicts pods until none is left that a drain evicts. */
import { keyOf, type Pod, pods } from '../kube/resources.ts';
import { createInformer, type Informer } from '../kube/watch/informer.ts';
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
  type RefusedPod,
  sortPods,
} from './pods.ts';

export interface DrainProgress {
  /** Pods that are left, terminating ones included; 0 until they are counted. */
  readonly left: number;
  /** The first of them in alphabetical order, as `namespace/name`; absent until they are counted. */
  readonly pods?: readonly string[];
  /** For people: what blocks which pods; absent when nothing does. */
  readonly blockedBy?: string;
}

/** A sentence with more names is hard to read. */
const MOST_NAMES = 5;

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

/** `2 pods are left on node n1 (default/a, default/b): what blocks them`; without `node` only that they are left. */
export function describeProgress(
  { left, pods: named = [], blockedBy }: DrainProgress,
  node?: string,
): string {
  const counted = left === 1 ? '1 pod is left' : `${left} pods are left`;
  const where = node === undefined ? '' : ` on node ${node}`;
  const more = left > named.length ? ` and ${left - named.length} more` : '';
  const names = named.length === 0 ? '' : ` (${named.join(', ')}${more})`;
  return `${counted}${where}${names}${blockedBy === undefined ? '' : `: ${blockedBy}`}`;
}

/** `abort` ends the drain; evicted pods stay evicted. */
export interface DrainParts extends Omit<EvictionParts, 'options' | 'onChange'> {
  readonly onChange?: (progress: DrainProgress) => void;
}

/** The options forbid to evict some pods of the node; the message names them all, and what lifts that. */
export class DrainRefusedError extends Error {
  override readonly name = 'DrainRefusedError';

  constructor(refused: readonly RefusedPod[]) {
    super(describeRefusedPods(refused));
  }
}

/** Resolves once the node has no pod left that a drain evicts; cordon it first, or new pods come. Has no deadline. */
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
  const drain = drainOf(view, options, { ...parts, log, abort });
  try {
    await view.whenSynced(abort);
    await drain.run();
  } finally {
    ending.abort();
    // Nothing runs after it settles.
    await Promise.all([following, drain.ended()]);
  }
}

const AGAIN_MS = 5_000;

/** Checks the node again after each change of its pods, and after each answer to an eviction. */
function drainOf(view: Informer<Pod>, options: DrainOptions, parts: DrainParts) {
  const { client, clock, abort, onChange } = parts;
  let changed = Promise.withResolvers<void>();
  const wake = (): void => changed.resolve();
  const daemonSets = daemonSetsOf(client);
  const rules = podRulesOf(client, options.podRules);
  const turnOf = (pod: Pod): number => rules.ruleFor(pod)?.turn ?? 0;
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
    // A change during this check must cause another one.
    changed = Promise.withResolvers<void>();
    await daemonSets.learn(view.list(), abort);
    const unknown = await rules.learn(view.list(), abort).catch(messageOf);
    if (unknown !== undefined) {
      report(progressOf(view.list(), `a namespace cannot be read: ${unknown}`), AGAIN_MS);
      return false;
    }
    const sorted = sortPods(view.list(), options, { ...daemonSets, ...rules });
    // Before it evicts any, and later, if such a pod arrives.
    if (sorted.refused.length > 0) throw new DrainRefusedError(sorted.refused);
    const returning = tooOften(sorted.evict);
    const evict = sorted.evict.filter((pod) => !returning.has(pod));
    const left = [...evict, ...sorted.ending, ...sorted.awaited];
    const turn = Math.min(...left.map(turnOf));
    evictions.want(evict.filter((pod) => turnOf(pod) === turn));
    const { text, nextInMs } = findOverdue(sorted.ending, clock.now());
    report(
      progressOf(left, evictions.blockedBy(), describeAwaited(sorted.awaited), text),
      nextInMs,
    );
    return left.length === 0;
  };
  return {
    ended: async () => await evictions.ended(),
    async run(): Promise<void> {
      using things = new DisposableStack();
      things.defer(view.addHandler({ added: wake, updated: wake, deleted: wake }));
      things.use(onAbort(abort, wake));
      things.defer(() => stopTimer());
      while (!(await isEmpty())) await changed.promise;
    },
  };
}

/** So many successors of a pod are evicted too; then it stays. One that fits nowhere else would come back for ever. */
const MAX_RETURNS = 3;

/** Finds the pods to evict that came back too often. Must be asked at each check of the node. */
function returningPods() {
  /** By uid: the controller that creates the successors of the pod, and how many predecessors were evicted. */
  const present = new Map<string, { readonly creator: string; readonly round: number }>();
  /** By creator: the rounds of the evicted pods. */
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
