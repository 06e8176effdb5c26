/** Observes a run with Jobs from outside, object by object, and finds violations. */
import type { CattlePlan } from '../../../src/api/cattle/plan.ts';
import { conditionOf, holds } from '../../../src/dialects/cattle/plan/conditions.ts';
import { hashLabelOf, PLAN_LABEL } from '../../../src/dialects/cattle/plan/names.ts';
import { cordonOwner } from '../../../src/drain/cordon-marks.ts';
import type { Job, KubeObject, Node } from '../../../src/kube/resources.ts';
import { hostnameFor, isAtWork, type JobWorld, nodeNameOf } from './job-world.ts';

export interface Observed {
  readonly world: JobWorld;
  /** How many nodes the observer allows to be upgraded at once; as many as each Plan says if undefined. */
  readonly allowed: number | undefined;
  /** Nodes that somebody cordoned before the run. */
  readonly cordoned: readonly string[];
}

const PLANS = ['plan', 'other'];
/** Seconds for which a node may be in `applying` without a Job and without a reason: longer than any trouble. */
const PATIENCE_S = 150;
/**
 * The number of seconds in which a new Job may still follow the earlier `concurrency`, because an edit may happen
 * between a decision and its write.
 */
const EDIT_S = 2;

export class JobObserver {
  readonly #observed: Observed;
  readonly #violations = new Set<string>();
  readonly #living = new Map<string, Job>();
  /** The uid of the Node at the time when the Job appeared, by the uid of the Job. */
  readonly #nodeUids = new Map<string, string | undefined>();
  /** The keys (Plan, node and hash) of the Jobs that completed. A key is removed when the upgrade may be repeated. */
  readonly #succeeded = new Set<string>();
  /** The keys (name of the Plan, node and hash) of all Jobs that ever completed. */
  readonly #everSucceeded = new Set<string>();
  /**
   * The keys (name of the Plan and node) whose last Job failed or was lost. Such a Job may have left a cordon, as a Job
   * of the original controller may.
   */
  readonly #unfinished = new Set<string>();
  /** Nodes whose Job was deleted together with its Plan. The next Plan assumes that somebody else cordoned the node. */
  readonly #abandoned = new Set<string>();
  readonly #failed = new Set<string>();
  /** The hash of the last Job that started and was not lost, by name of the Plan and node. */
  readonly #ran = new Map<string, string>();
  /** Seconds without a Job, by Plan and host name. */
  readonly #jobless = new Map<string, number>();
  /**
   * The number of nodes at work a second ago, by Plan. If the limit is lowered, nodes that are already at work
   * continue.
   */
  readonly #most = new Map<string, number>();
  /** The number of nodes in `applying` a second ago, by Plan. */
  readonly #listed = new Map<string, number>();
  /** The values of `concurrency` in the last seconds, by Plan. */
  readonly #limits = new Map<string, number[]>();
  #quietS = 0;

  constructor(observed: Observed) {
    this.#observed = observed;
  }

  get violations(): readonly string[] {
    return [...this.#violations];
  }

  /** Seconds without any change. */
  get quietS(): number {
    return this.#quietS;
  }

  changed(): void {
    this.#quietS = 0;
  }

  lookAtJob(job: Job): void {
    const { uid = '' } = job.metadata;
    const before = this.#living.get(uid);
    if (!before) {
      this.#lookAtNewJob(job);
      const node = this.#observed.world.nodes.find(
        ({ metadata }) => metadata.name === nodeNameOf(job),
      );
      this.#nodeUids.set(uid, node?.metadata.uid);
    }
    const starts = isAtWork(job) && !(before && isAtWork(before));
    this.#living.set(uid, job);
    if (starts) this.#lookAtStart(job);
    if (holds(job, 'Complete') && !(before && holds(before, 'Complete'))) this.#completed(job);
    if (holds(job, 'Failed')) {
      this.#failed.add(placeOf(job));
      this.#unfinished.add(placeOf(job));
    }
  }

  lookAtLostJob(job: Job): void {
    const { uid = '' } = job.metadata;
    this.#living.delete(uid);
    const { world } = this.#observed;
    const isOurs = world.removed.has(uid);
    if (isOurs && isAtWork(job)) this.#unfinished.add(placeOf(job));
    if (world.plans.every(({ metadata }) => metadata.uid !== ownerOf(job)))
      this.#abandoned.add(nodeNameOf(job));
    // The controller deletes the Job of a node that no longer exists, as the original controller does.
    const node = world.nodes.find(({ metadata }) => metadata.name === nodeNameOf(job));
    const isForLostNode = this.#nodeUids.get(uid) !== node?.metadata.uid;
    this.#hold(
      isOurs || isForLostNode || !isAtWork(job),
      `running Job deleted: ${job.metadata.name}`,
    );
    // A completed Job may also be deleted if a later Job ran on the node and the Plan returned to the hash of the
    // deleted Job.
    const isLast = (this.#ran.get(placeOf(job)) ?? hashOf(job)) === hashOf(job);
    const makesRoom = isForLostNode || !isLast;
    this.#hold(
      isOurs || makesRoom || !holds(job, 'Complete'),
      `completed Job deleted: ${job.metadata.name}`,
    );
    // The Job was lost before its hash was written to the label of the node. So the controller can't know that the Job
    // completed, and the next Job repeats the upgrade.
    if (!isOurs || this.#labelOn(nodeNameOf(job), job) === hashOf(job)) return;
    this.#succeeded.delete(keyOf(job));
    this.#ran.delete(placeOf(job));
    this.#unfinished.add(placeOf(job));
  }

  lookAtNode(node: Node, before: Node | undefined): void {
    const { name, labels = {} } = node.metadata;
    if (this.#observed.world.replaced.has(name) && before?.metadata.uid !== node.metadata.uid)
      this.#forget(name);
    for (const plan of PLANS) {
      const hash = labels[hashLabelOf(plan)];
      const isNew = hash !== undefined && hash !== before?.metadata.labels?.[hashLabelOf(plan)];
      // Somebody who removes the label requests the upgrade again.
      if (hash === undefined && before?.metadata.labels?.[hashLabelOf(plan)] !== undefined)
        this.#mayRepeat(name);
      this.#hold(
        !isNew || this.#everSucceeded.has(`${plan} ${name} ${hash}`),
        `done without a Job: ${name}`,
      );
    }
  }

  /** Must be called each second. */
  passSecond(): void {
    this.#quietS++;
    for (const plan of this.#observed.world.plans) {
      const { name, uid = '' } = plan.metadata;
      const limits = this.#limits.get(uid) ?? [];
      this.#limits.set(uid, [plan.spec?.concurrency ?? 0, ...limits.slice(0, EDIT_S)]);
      const most = Math.max(...(this.#limits.get(uid) ?? []), this.#listed.get(uid) ?? 0);
      const listed = plan.status?.applying?.length ?? 0;
      this.#hold(listed <= most, 'more recorded than concurrency');
      this.#listed.set(uid, listed);
      const mostBefore = this.#most.get(uid) ?? 0;
      const here = this.#atWorkFor(uid);
      this.#hold(
        here <= Math.max(mostBefore, listed, ...(this.#limits.get(uid) ?? [])),
        'more than concurrency',
      );
      this.#most.set(uid, here);
      for (const { metadata } of this.#observed.world.nodes) {
        const key = `${uid} ${metadata.name}`;
        const isListed = plan.status?.applying?.includes(hostnameFor(metadata.name)) === true;
        const hasJob = [...this.#living.values()].some(
          (job) => nodeNameOf(job) === metadata.name && planOf(job) === name,
        );
        const isTold = /^(?:JobFailed|NotReady|Waiting)$/.test(
          conditionOf(plan, 'Complete')?.reason ?? '',
        );
        const seconds = isListed && !hasJob && !isTold ? (this.#jobless.get(key) ?? 0) + 1 : 0;
        this.#jobless.set(key, seconds);
        this.#hold(seconds < PATIENCE_S, `no Job and no reason: ${metadata.name}`);
      }
    }
  }

  /** Returns the worst end of all Plans. `stuck` is worse than `JobFailed`, which is worse than `Complete`. */
  get end(): string {
    const ends = this.#observed.world.plans.map(endOf);
    return (
      ends.find((end) => end.startsWith('stuck')) ??
      ends.find((end) => end === 'JobFailed') ??
      ends[0] ??
      'no Plan'
    );
  }

  /** Describes what is wrong at the end, when nothing changes any more. */
  leftovers(): string[] {
    const { world, cordoned } = this.#observed;
    const left: string[] = [];
    for (const node of world.nodes) {
      const { name } = node.metadata;
      const isCordoned = node.spec?.unschedulable === true;
      const wasCordoned =
        (cordoned.includes(name) || world.cordoned.has(name)) && !world.replaced.has(name);
      if (wasCordoned && !isCordoned) left.push(`somebody's cordon is gone: ${name}`);
      const isLeft = world.plans.some(({ metadata }) =>
        this.#unfinished.has(`${metadata.name} ${name}`),
      );
      const isExcused = isLeft || this.#abandoned.has(name);
      if (!wasCordoned && isCordoned && !isExcused) left.push(`cordon on ${name}`);
      if (cordonOwner(node) !== undefined) left.push(`mark of a cordon on ${name}`);
    }
    return [...left, ...world.plans.flatMap((plan) => this.#lackOf(plan))];
  }

  #lackOf(plan: CattlePlan): string[] {
    const { world } = this.#observed;
    const { name, uid = '' } = plan.metadata;
    const { latestHash, latestVersion } = plan.status ?? {};
    const undone = world.nodes.filter(
      ({ metadata }) => metadata.labels?.[hashLabelOf(name)] !== latestHash,
    );
    // Leaves out the hash label, because the label of a failed node may be that of an earlier upgrade.
    const failed = world.nodes.filter(({ metadata }) =>
      this.#failed.has(`${name} ${metadata.name}`),
    );
    const isHeldUp = failed.length >= (this.#limits.get(uid)?.[0] ?? 0);
    const missing = isHeldUp ? failed.slice(0, 0) : undone.filter((node) => !failed.includes(node));
    const wanted = plan.spec?.version ?? world.version;
    const labelled = world.nodes.filter((node) => !undone.includes(node));
    const outdated = labelled.filter(({ metadata }) => {
      const ran = this.#ran.get(`${name} ${metadata.name}`);
      return ran !== undefined && ran !== latestHash;
    });
    return [
      ...outdated.map(
        ({ metadata }) => `${name}: ${metadata.name} has another version than its label says`,
      ),
      ...missing.map(({ metadata }) => `${name}: ${metadata.name} is not done`),
      ...(endOf(plan) === 'JobFailed' && failed.length === 0
        ? [`${name}: failed without a failed Job`]
        : []),
      ...(endOf(plan) === 'Complete' && undone.length > 0
        ? [`${name}: complete, but ${undone.length} are not done`]
        : []),
      ...(latestVersion === wanted
        ? []
        : [`${name}: version ${latestVersion} instead of ${wanted}`]),
    ];
  }

  #lookAtNewJob(job: Job): void {
    const key = keyOf(job);
    const node = nodeNameOf(job);
    const twin = [...this.#living.values()].some((other) => keyOf(other) === key);
    this.#hold(!twin, `doubled Job: ${node}`);
    this.#hold(!this.#succeeded.has(key), `upgraded twice: ${node}`);
    const plan = this.#observed.world.plans.find(({ metadata }) => metadata.uid === ownerOf(job));
    const isListed = plan?.status?.applying?.includes(hostnameFor(node)) !== false;
    this.#hold(isListed, `Job before intent: ${node}`);
  }

  #lookAtStart(job: Job): void {
    const here = [...this.#living.values()].filter(
      (other) => isAtWork(other) && nodeNameOf(other) === nodeNameOf(job),
    );
    this.#hold(here.length === 1, `two Jobs at work: ${nodeNameOf(job)}`);
    this.#ran.set(placeOf(job), hashOf(job));
    // Going back to an earlier version is another upgrade.
    const others = `${ownerOf(job)} ${nodeNameOf(job)} `;
    for (const key of this.#succeeded)
      if (key.startsWith(others) && key !== keyOf(job)) this.#succeeded.delete(key);
    const { allowed, world } = this.#observed;
    const { spec, status } =
      world.plans.find(({ metadata }) => metadata.uid === ownerOf(job)) ?? {};
    // Nodes that were recorded before the limit was lowered keep their slots.
    const limits = [
      spec?.concurrency ?? 0,
      status?.applying?.length ?? 0,
      ...(this.#limits.get(ownerOf(job)) ?? []),
    ];
    this.#hold(
      this.#atWorkFor(ownerOf(job)) <= (allowed ?? Math.max(...limits)),
      'more than concurrency',
    );
  }

  /** Counts the nodes with a Job at work. Leaves out Jobs whose node no longer exists, because they do nothing. */
  #atWorkFor(owner: string): number {
    const present = new Set(this.#observed.world.nodes.map(({ metadata }) => metadata.name));
    const atWork = [...this.#living.values()].filter(
      (job) => isAtWork(job) && ownerOf(job) === owner,
    );
    return new Set(atWork.map(nodeNameOf).filter((name) => present.has(name))).size;
  }

  #completed(job: Job): void {
    const node = nodeNameOf(job);
    this.#succeeded.add(keyOf(job));
    this.#everSucceeded.add(`${planOf(job)} ${node} ${hashOf(job)}`);
    this.#unfinished.delete(placeOf(job));
    this.#failed.delete(placeOf(job));
  }

  /** Forgets the Jobs of a node that was replaced. The new machine with the same name has run no Job. */
  #forget(node: string): void {
    this.#mayRepeat(node);
    for (const plan of PLANS) this.#ran.delete(`${plan} ${node}`);
  }

  #mayRepeat(node: string): void {
    for (const key of this.#succeeded) if (key.includes(` ${node} `)) this.#succeeded.delete(key);
  }

  #labelOn(node: string, job: Job): string | undefined {
    const found = this.#observed.world.nodes.find(({ metadata }) => metadata.name === node);
    return found?.metadata.labels?.[hashLabelOf(planOf(job))];
  }

  #hold(holds: boolean, invariant: string): void {
    if (!holds) this.#violations.add(invariant);
  }
}

function endOf(plan: CattlePlan): string {
  const { status, reason = '', message = '' } = conditionOf(plan, 'Complete') ?? {};
  if (status === 'True') return 'Complete';
  return reason === 'JobFailed' ? reason : `stuck: ${reason} ${message}`;
}

const planOf = ({ metadata }: KubeObject): string => metadata.labels?.[PLAN_LABEL] ?? '';
const ownerOf = ({ metadata }: KubeObject): string => metadata.ownerReferences?.[0]?.uid ?? '';
const hashOf = (job: Job): string => job.metadata.labels?.[hashLabelOf(planOf(job))] ?? '';
const placeOf = (job: Job): string => `${planOf(job)} ${nodeNameOf(job)}`;
const keyOf = (job: Job): string => `${ownerOf(job)} ${nodeNameOf(job)} ${hashOf(job)}`;
