/** Simulates everything that runs Jobs, and people who interfere. It acts once a second and never fails. */
import type { ApiServer } from '../../../sandbox/api-server/api-server.ts';
import type { CattlePlan } from '../../../src/api/cattle/plan.ts';
import { cattlePlans } from '../../../src/api/kinds.ts';
import { holds } from '../../../src/dialects/cattle/plan/conditions.ts';
import { isHeld } from '../../../src/dialects/cattle/plan/leader-drain.ts';
import { hashLabelOf, NODE_LABEL } from '../../../src/dialects/cattle/plan/names.ts';
import { isPaused } from '../../../src/dialects/cattle/plan/plan-jobs.ts';
import { PULL_LABEL } from '../../../src/drain/own-pods.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import {
  type Condition,
  type Job,
  jobs,
  type KubeObject,
  type Node,
  nodes,
} from '../../../src/kube/resources.ts';
import { type Clock, rfc3339 } from '../../../src/util/clock.ts';
import { buildCattlePlan, type CattleSpec } from '../../support/builders/cattle-plans.ts';
import { addNode } from '../lab/lab-objects.ts';
import { pick } from '../random.ts';

export const NAMESPACE = 'system-upgrade';
/** A Job whose first argument is this text fails. */
const FAILURE = 'exit 1';
const FIRST_VERSION = 'v1';
/** Seconds that the container of a Job works. */
const JOB_S = 3;
/** The seconds after which a deleted node or Plan exists again, and a node that is not Ready becomes Ready again. */
const BACK_S = 20;

export const INTERFERENCES = [
  'an unfinished Job is deleted',
  'a finished Job is deleted',
  'a Job fails',
  'a node is deleted and created again',
  'a node is added',
  'a node is not Ready for a while',
  'the wanted version changes',
  'the wanted version changes back to the first version',
  'somebody cordons an upgraded node',
  'somebody removes the label of the Plan from an upgraded node',
  'the Job template changes',
  'the concurrency of the Plan increases',
  'the concurrency of the Plan decreases',
  'the Plan is deleted and created again',
  'the API server loses its history of changes',
] as const;

export type Interference = (typeof INTERFERENCES)[number];

export interface JobWorldParts {
  readonly server: ApiServer;
  readonly admin: KubeClient;
  readonly clock: Clock;
  readonly random: () => number;
  /** The nodes on which the payload fails until the template changes. */
  readonly failsOn: readonly string[];
}

export const hostnameFor = (name: string): string => `host-${name}`;

/** Reports whether the containers of the Job may run. */
export function isAtWork(job: Job): boolean {
  return !isPaused(job) && !isHeld(job) && !isOver(job);
}

export function isOver(job: Job): boolean {
  return holds(job, 'Complete') !== undefined || holds(job, 'Failed') !== undefined;
}

export const nodeNameOf = ({ metadata }: KubeObject): string => metadata.labels?.[NODE_LABEL] ?? '';

export class JobWorld {
  readonly #parts: JobWorldParts;
  /** Actions that are due later, with their times. */
  readonly #due: { readonly atMs: number; act(): Promise<void> }[] = [];
  /** uids of Jobs whose containers fail. */
  readonly #doomed = new Set<string>();
  /** uids of Jobs that somebody other than the controller deleted. */
  readonly removed = new Set<string>();
  /** Names of nodes that were replaced. */
  readonly replaced = new Set<string>();
  /** Names of nodes that somebody cordoned after their upgrade was done. */
  readonly cordoned = new Set<string>();
  /** The version that the channel reports. */
  version = FIRST_VERSION;

  constructor(parts: JobWorldParts) {
    this.#parts = parts;
  }

  /** The Jobs of Plans. */
  get jobs(): readonly Job[] {
    return this.#objects('batch', 'jobs').filter((job) => !isPull(job));
  }

  /** The Jobs that pull images, each of which is complete within a second. */
  get #pulls(): readonly Job[] {
    return this.#objects('batch', 'jobs').filter(isPull);
  }

  get nodes(): readonly Node[] {
    return this.#objects('', 'nodes');
  }

  get plans(): readonly CattlePlan[] {
    return this.#objects('upgrade.cattle.io', 'plans');
  }

  /** False while an action is still due or a Job is at work. */
  get isSettled(): boolean {
    return this.#due.length === 0 && !this.jobs.some(isAtWork);
  }

  async apply(name: string, wanted: Partial<CattleSpec>, hasChannel: boolean): Promise<void> {
    const { spec: { version: _v, ...spec } = {}, ...plan } = buildCattlePlan(name, wanted);
    const { uid: _, creationTimestamp: __, ...metadata } = plan.metadata;
    const source = hasChannel
      ? { channel: 'https://example.com/latest' }
      : { version: this.version };
    await this.#parts.admin.create(cattlePlans, {
      ...plan,
      metadata,
      spec: { ...spec, ...source } as CattleSpec,
    });
  }

  async tick(): Promise<void> {
    const now = this.#parts.clock.now();
    for (const due of this.#due.filter(({ atMs }) => atMs <= now)) {
      this.#due.splice(this.#due.indexOf(due), 1);
      await due.act();
    }
    const owners = new Set(this.plans.map(({ metadata }) => metadata.uid));
    for (const job of this.#pulls) if (!isOver(job)) await this.#finish(job, 'Complete', '');
    for (const job of [...this.jobs, ...this.#pulls]) {
      const isOwned = owners.has(job.metadata.ownerReferences?.[0]?.uid);
      if (!isOwned || this.#isExpired(job)) await this.#remove(job);
      else if (isAtWork(job) && !isPull(job)) await this.#moveOn(job);
    }
  }

  async interfere(what: Interference): Promise<void> {
    const { admin, server, random } = this.#parts;
    const [plan] = this.plans;
    const { concurrency = 1, version, upgrade } = plan?.spec ?? {};
    const open = this.jobs.filter((job) => !isOver(job));
    const next = `n${this.nodes.length + 10}`;
    const acts: Record<Interference, () => Promise<void>> = {
      'an unfinished Job is deleted': async () => await this.#remove(some(random, open)),
      'a finished Job is deleted': async () =>
        await this.#remove(some(random, this.jobs.filter(isOver))),
      'a Job fails': async () => {
        await Promise.resolve(this.#doomed.add(some(random, open)?.metadata.uid ?? ''));
      },
      'a node is deleted and created again': async () =>
        await this.#replaceNode(some(random, this.nodes)),
      'a node is added': async () => await addNode(admin, next, labelsFor(next)),
      'a node is not Ready for a while': async () => await this.#unready(some(random, this.nodes)),
      'the wanted version changes': async () => {
        this.version = `${this.version}.1`;
        if (version !== undefined) await this.#edit(plan, { version: this.version });
      },
      'the wanted version changes back to the first version': async () => {
        this.version = FIRST_VERSION;
        if (version !== undefined) await this.#edit(plan, { version: this.version });
      },
      'somebody cordons an upgraded node': async () =>
        await this.#cordon(some(random, this.#done(plan))),
      'somebody removes the label of the Plan from an upgraded node': async () => {
        const node = some(random, this.#done(plan));
        const labels = { [hashLabelOf(plan?.metadata.name ?? '')]: null };
        if (node) await this.#patch(nodes, node, { metadata: { labels } });
      },
      'the Job template changes': async () =>
        await this.#edit(plan, {
          upgrade: { image: 'img', ...upgrade, args: [`again-${plan?.metadata.generation}`] },
        }),
      'the concurrency of the Plan increases': async () =>
        await this.#edit(plan, { concurrency: concurrency + 1 }),
      'the concurrency of the Plan decreases': async () =>
        await this.#edit(plan, { concurrency: Math.max(1, concurrency - 1) }),
      'the Plan is deleted and created again': async () => await this.#replacePlan(plan),
      'the API server loses its history of changes': async () =>
        await Promise.resolve(server.compact()),
    };
    await acts[what]();
  }

  async #edit(plan: CattlePlan | undefined, change: Partial<CattleSpec>): Promise<void> {
    if (plan) await this.#patch(cattlePlans, plan, { spec: change });
  }

  async #patch(
    resource: typeof cattlePlans | typeof nodes | typeof jobs,
    { metadata }: KubeObject,
    change: object,
    subresource?: string,
  ): Promise<void> {
    const { name, namespace } = metadata;
    await this.#parts.admin.patch<KubeObject>(resource, name, change, {
      namespace,
      type: 'merge',
      subresource,
    });
  }

  /** Advances a Job at work: the Job starts, ends, or exceeds its deadline. */
  async #moveOn(job: Job): Promise<void> {
    const { startTime } = job.status ?? {};
    const now = this.#parts.clock.now();
    const node = this.nodes.find(({ metadata }) => metadata.name === nodeNameOf(job));
    if (startTime === undefined) {
      if (node && cordonsItself(job))
        await this.#patch(nodes, node, { spec: { unschedulable: true } });
      return await this.#patch(
        jobs,
        job,
        { status: { startTime: rfc3339(now), active: 1 } },
        'status',
      );
    }
    const age = (now - Date.parse(startTime)) / 1000;
    const deadline = Number(job.spec?.['activeDeadlineSeconds'] ?? Number.POSITIVE_INFINITY);
    if (age >= deadline) return await this.#finish(job, 'Failed', 'DeadlineExceeded');
    if (!node || age < JOB_S) return;
    const fails = this.#doomed.has(job.metadata.uid ?? '') || this.#isFailing(job);
    await this.#finish(job, fails ? 'Failed' : 'Complete', fails ? 'BackoffLimitExceeded' : '');
  }

  async #finish(job: Job, type: 'Complete' | 'Failed', reason: string): Promise<void> {
    const time = rfc3339(this.#parts.clock.now());
    const before = type === 'Complete' ? 'SuccessCriteriaMet' : 'FailureTarget';
    const conditions: Condition[] = [before, type].map((each) => ({
      type: each,
      status: 'True',
      reason,
      message: '',
      lastTransitionTime: time,
    }));
    const completion = type === 'Complete' ? { completionTime: time } : {};
    const startTime = job.status?.startTime ?? time;
    await this.#patch(
      jobs,
      job,
      { status: { startTime, ...completion, active: null, conditions } },
      'status',
    );
  }

  #isFailing(job: Job): boolean {
    return (
      this.#parts.failsOn.includes(nodeNameOf(job)) && JSON.stringify(job.spec).includes(FAILURE)
    );
  }

  #isExpired(job: Job): boolean {
    const { lastTransitionTime } = holds(job, 'Complete') ?? holds(job, 'Failed') ?? {};
    const ttl = Number(job.spec?.['ttlSecondsAfterFinished'] ?? 0);
    return (
      lastTransitionTime !== undefined &&
      this.#parts.clock.now() >= Date.parse(lastTransitionTime) + ttl * 1000
    );
  }

  async #remove(job: Job | undefined): Promise<void> {
    if (!job) return;
    const { name, namespace, uid = '' } = job.metadata;
    this.removed.add(uid);
    await this.#parts.admin.delete(jobs, name, { namespace });
  }

  /** Returns the schedulable nodes of a Plan that is complete. Nothing is in progress on these nodes. */
  #done(plan: CattlePlan | undefined): Node[] {
    const isComplete = plan?.status?.conditions?.some(
      ({ type, status }) => type === 'Complete' && status === 'True',
    );
    const isAsked =
      plan?.spec?.version === undefined || plan.spec.version === plan.status?.latestVersion;
    return isComplete === true && isAsked
      ? this.nodes.filter(({ spec }) => spec?.unschedulable !== true)
      : [];
  }

  async #cordon(node: Node | undefined): Promise<void> {
    if (!node) return;
    this.cordoned.add(node.metadata.name);
    await this.#patch(nodes, node, { spec: { unschedulable: true } });
  }

  async #replaceNode(node: Node | undefined): Promise<void> {
    if (!node) return;
    const { name } = node.metadata;
    this.replaced.add(name);
    await this.#parts.admin.delete(nodes, name);
    this.#later(async () => await addNode(this.#parts.admin, name, labelsFor(name)));
  }

  async #unready(node: Node | undefined): Promise<void> {
    if (!node) return;
    const tell = async (status: 'True' | 'False'): Promise<void> => {
      const isThere = this.nodes.some(({ metadata }) => metadata.uid === node.metadata.uid);
      const conditions = [
        { type: 'Ready', status, lastTransitionTime: rfc3339(this.#parts.clock.now()) },
      ];
      if (isThere) await this.#patch(nodes, node, { status: { conditions } }, 'status');
    };
    await tell('False');
    this.#later(async () => await tell('True'));
  }

  async #replacePlan(plan: CattlePlan | undefined): Promise<void> {
    if (!plan) return;
    const { name, namespace } = plan.metadata;
    await this.#parts.admin.delete(cattlePlans, name, { namespace });
    this.#later(
      async () => await this.apply(name, plan.spec ?? {}, plan.spec?.channel !== undefined),
    );
  }

  #later(act: () => Promise<void>): void {
    this.#due.push({ atMs: this.#parts.clock.now() + BACK_S * 1000, act });
  }

  #objects(group: string, plural: string): readonly KubeObject[] {
    return this.#parts.server.objects(group, plural);
  }
}

export const labelsFor = (name: string): Record<string, string> => ({
  'kubernetes.io/hostname': hostnameFor(name),
});

/** A template whose payload fails on the nodes in `failsOn` until the template changes. */
export const FAILING: Pick<CattleSpec, 'upgrade'> = { upgrade: { image: 'img', args: [FAILURE] } };

/** Returns true for a Job that pulls the image of a Plan. */
export const isPull = ({ metadata }: KubeObject): boolean =>
  metadata.labels?.[PULL_LABEL] !== undefined;

function cordonsItself(job: Job): boolean {
  return /"name":"(?:cordon|drain)"/.test(JSON.stringify(job.spec?.['template'] ?? {}));
}

function some<T>(random: () => number, items: readonly T[]): T | undefined {
  return items.length === 0 ? undefined : pick(random, items);
}
