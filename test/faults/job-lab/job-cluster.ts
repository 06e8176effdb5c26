/**
 * One run with Jobs: a cluster in one process and simulated time, in which calls fail, processes die and people
 * interfere.
 */
import { type ApiServer, startApiServer } from '../../../sandbox/api-server/api-server.ts';
import { cattlePlans } from '../../../src/api/kinds.ts';
import { cattle } from '../../../src/dialects/cattle/plan/cattle-dialect.ts';
import { channelController } from '../../../src/dialects/cattle/plan/channel-controller.ts';
import { DEFAULT_JOB_SETTINGS } from '../../../src/dialects/cattle/plan/config.ts';
import type { Caller, KubeClient } from '../../../src/kube/client.ts';
import {
  jobs,
  type KubeObject,
  namespaces,
  nodes,
  type Resource,
} from '../../../src/kube/resources.ts';
import { clientOver } from '../../../src/kube/transport/http-client.ts';
import { createInformer, type Informer } from '../../../src/kube/watch/informer.ts';
import type { Handler } from '../../../src/kube/watch/store.ts';
import type { CattleSpec } from '../../support/builders/cattle-plans.ts';
import { FakeClock } from '../../support/clock/fake-clock.ts';
import type { Tape } from '../lab/call-points.ts';
import { type LabTools, runLabController } from '../lab/lab-controller.ts';
import { addNode, addPod, installKinds } from '../lab/lab-objects.ts';
import { LabProcesses } from '../lab/lab-processes.ts';
import { seededRandom } from '../random.ts';
import { JobObserver } from './job-observer.ts';
import { FAILING, isPull, JobWorld, labelsFor, NAMESPACE } from './job-world.ts';

export interface JobScene {
  readonly nodes: readonly string[];
  readonly concurrency: number;
  readonly cordons: 'nobody' | 'the Job' | 'the leader';
  /** The nodes on which the payload fails until the template changes. */
  readonly failsOn?: readonly string[];
  /** Nodes that somebody cordoned before the run. */
  readonly cordoned?: readonly string[];
  /** True for a second Plan for the same nodes. */
  readonly hasOther?: boolean;
  /** True if the version comes from a channel. */
  readonly hasChannel?: boolean;
  /** Seconds for which a node keeps its slot after its Job. */
  readonly restS?: number;
  /** The seconds after which a finished Job is deleted; the default of the product if undefined. */
  readonly ttlS?: number;
  readonly hasStandby?: boolean;
  /** How many nodes the observer allows to be upgraded at once; as many as the Plan says if undefined. */
  readonly allowed?: number;
  /** Changes the requests of an actor, to plant a mistake. */
  readonly tamper?: (actor: string, caller: Caller) => Caller;
}

export interface JobRunOptions extends JobScene {
  readonly tape: Tape;
  readonly seed: number;
  /** Called every second. Returns false while more mishaps are to come. */
  readonly everySecond: (run: JobLab, second: number) => Promise<boolean>;
}

export interface JobLab {
  readonly processes: LabProcesses;
  readonly world: JobWorld;
}

export interface JobVerdict {
  /** `Complete`, `JobFailed`, or `stuck` and why. */
  readonly end: string;
  readonly violations: readonly string[];
  /** Seconds from the start to the last change. */
  readonly seconds: number;
}

/** The most seconds that a run may take, far more than any run needs. */
const PATIENCE_S = 1_500;
/**
 * The seconds without a change after which a run is over. Longer than a Lease, a cut connection and each pause before a
 * retry.
 */
const QUIET_S = 75;
const CHANNEL_MS = 10_000;

export async function runJobLab(options: JobRunOptions): Promise<JobVerdict> {
  const clock = new FakeClock();
  let objects = 0;
  // The uids depend on the seed, because the order of nodes depends on the uids.
  const newUid = (): string => `uid-${++objects}-${options.seed}`;
  const run = new Run(options, clock, await startApiServer({ clock, newUid }));
  try {
    return await run.play();
  } finally {
    await run.stop();
  }
}

class Run implements JobLab {
  readonly processes: LabProcesses;
  readonly world: JobWorld;
  readonly #options: JobRunOptions;
  readonly #clock: FakeClock;
  readonly #server: ApiServer;
  readonly #admin: KubeClient;
  readonly #random: () => number;
  readonly #observer: JobObserver;
  readonly #over = new AbortController();

  constructor(options: JobRunOptions, clock: FakeClock, server: ApiServer) {
    const { tape, tamper, failsOn = [], allowed, cordoned = [] } = options;
    this.#options = options;
    this.#clock = clock;
    this.#server = server;
    this.#admin = clientOver(server.caller);
    this.#random = seededRandom(options.seed);
    this.world = new JobWorld({ server, clock, admin: this.#admin, random: this.#random, failsOn });
    this.#observer = new JobObserver({ world: this.world, allowed, cordoned });
    const callerFor = (actor: string): Caller => tamper?.(actor, server.caller) ?? server.caller;
    this.processes = new LabProcesses({ clock, tape, callerFor });
  }

  async play(): Promise<JobVerdict> {
    const { everySecond } = this.#options;
    await this.#clock.runUntil(this.#setUp());
    this.#watch(jobs, {
      added: (job) => isPull(job) || this.#observer.lookAtJob(job),
      updated: (job) => isPull(job) || this.#observer.lookAtJob(job),
      deleted: (job) => isPull(job) || this.#observer.lookAtLostJob(job),
    });
    this.#watch(nodes, {
      added: (node) => this.#observer.lookAtNode(node, undefined),
      updated: (node, before) => this.#observer.lookAtNode(node, before),
      deleted: () => undefined,
    });
    this.#watch(cattlePlans, {
      added: () => undefined,
      updated: () => undefined,
      deleted: () => undefined,
    });
    await this.#clock.advance(0);
    this.#startControllers();
    await this.#applyPlans();
    let second = 0;
    for (let isOver = false; second < PATIENCE_S && !isOver; second++) {
      await this.world.tick();
      const mayEnd = await everySecond(this, second);
      this.#observer.passSecond();
      await this.#clock.advance(1_000);
      isOver = mayEnd && this.world.isSettled && this.#observer.quietS > QUIET_S;
    }
    const restless = second < PATIENCE_S ? [] : ['never at rest'];
    const violations = [...this.#observer.violations, ...this.#observer.leftovers(), ...restless];
    return { end: this.#observer.end, violations, seconds: second - this.#observer.quietS };
  }

  async stop(): Promise<void> {
    this.#over.abort();
    this.processes.stopAll();
    await this.#server.stop();
  }

  async #setUp(): Promise<void> {
    await installKinds(this.#admin);
    await this.#admin.create(namespaces, { metadata: { name: NAMESPACE } });
    for (const name of this.#options.nodes) {
      await addNode(this.#admin, name, labelsFor(name));
      if (this.#options.cordons === 'the leader') await addPod(this.#admin, name);
    }
    for (const name of this.#options.cordoned ?? [])
      await this.#admin.patch(nodes, name, { spec: { unschedulable: true } }, { type: 'merge' });
  }

  async #applyPlans(): Promise<void> {
    const { concurrency, cordons, failsOn, hasOther, hasChannel, restS } = this.#options;
    const spec: Partial<CattleSpec> = {
      concurrency,
      ...(cordons === 'nobody' ? {} : { drain: {} }),
      ...(failsOn ? FAILING : {}),
      ...(restS === undefined ? {} : { postCompleteDelay: `${restS}s` }),
    };
    await this.world.apply('plan', spec, hasChannel === true);
    if (hasOther === true) await this.world.apply('other', {}, false);
  }

  #startControllers(): void {
    const { cordons, ttlS, hasStandby } = this.#options;
    const ttlSecondsAfterFinish = ttlS ?? DEFAULT_JOB_SETTINGS.ttlSecondsAfterFinish;
    const drainInJob = cordons !== 'the leader';
    const job = {
      ...DEFAULT_JOB_SETTINGS,
      activeDeadlineSeconds: 100,
      ttlSecondsAfterFinish,
      drainInJob,
    };
    // The image of the Plans counts as an installer, so that nodes pull it before they start. Its version is no version of Kubernetes,
    // so no kubelet must report it.
    const installers = ['img'];
    const config = { name: 'system-upgrade-controller', namespace: NAMESPACE, job, installers };
    const ask = async (): Promise<string> => await Promise.resolve(this.world.version);
    let terms = 0;
    for (const actor of hasStandby === true ? ['controller', 'standby'] : ['controller']) {
      this.processes.register(actor, (client, stop, clock) => {
        const listNodes = async () => (await client.list(nodes)).items;
        const parts = {
          dialect: cattle(config),
          client,
          identity: `${actor}-${++terms}`,
          clock,
          random: this.#random,
          isReady: () => true,
          controllers: (tools: LabTools, plans: Informer) => [
            channelController({
              ...tools,
              plans,
              intervalMs: CHANNEL_MS,
              ask,
              listNodes,
              versions: {},
            }),
          ],
        };
        // A controller process that fails is restarted.
        runLabController(parts, stop).catch(() => stop.aborted || this.processes.crash(actor));
      });
    }
    this.processes.startAll();
  }

  /** Watches the objects of a kind. Each of their changes restarts the observer's count of quiet seconds. */
  #watch<T extends KubeObject>(resource: Resource<T>, handler: Handler<T>): void {
    const informer = createInformer(this.#admin, resource, { clock: this.#clock });
    const observer = this.#observer;
    informer.addHandler({
      added: (object) => {
        observer.changed();
        handler.added?.(object);
      },
      updated: (object, before) => {
        observer.changed();
        handler.updated?.(object, before);
      },
      deleted: (object) => {
        observer.changed();
        handler.deleted?.(object);
      },
    });
    void informer.run(this.#over.signal);
  }
}
