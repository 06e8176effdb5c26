/** One run in the lab: a cluster in one process and simulated time, in which processes die and calls fail. */
import { startApiServer } from '../../../sandbox/api-server/api-server.ts';
import { PLAN_NAME, type Plan, plans } from '../../../src/api/autopilot/plan.ts';
import { autopilot } from '../../../src/dialects/autopilot/plan/autopilot-dialect.ts';
import type { RecordSharding } from '../../../src/engine/contract/features.ts';
import { ABORT_ANNOTATION } from '../../../src/engine/model/controls.ts';
import type { Caller, KubeClient } from '../../../src/kube/client.ts';
import { nodes, type Resource } from '../../../src/kube/resources.ts';
import { clientOver } from '../../../src/kube/transport/http-client.ts';
import { createInformer } from '../../../src/kube/watch/informer.ts';
import { controlNodes } from '../../../src/signal/names.ts';
import { rfc3339 } from '../../../src/util/clock.ts';
import { OLD } from '../../model/cluster.ts';
import type { Quality } from '../../model/host.ts';
import { FakeClock } from '../../support/clock/fake-clock.ts';
import { seededRandom } from '../random.ts';
import type { Tape } from './call-points.ts';
import { LabAgent } from './lab-agent.ts';
import { runLabController } from './lab-controller.ts';
import { LabHost } from './lab-host.ts';
import {
  addNode,
  addPod,
  applyPlan,
  installKinds,
  tellVersion,
  type Wanted,
} from './lab-objects.ts';
import { LabObserver } from './lab-observer.ts';
import { LabProcesses } from './lab-processes.ts';

export interface RunOptions extends Wanted {
  readonly tape: Tape;
  readonly seed: number;
  /** The status sharding; the default of the product if undefined. With that default a small plan needs no shards. */
  readonly shards?: RecordSharding<Plan>;
  /** The quality of the payload; good if undefined. */
  readonly payload?: Quality;
  /** The only nodes on which the payload has the quality `payload`; all nodes if undefined. */
  readonly payloadOf?: readonly string[];
  /** How many workers may fail before no more targets start; 0 if undefined. */
  readonly maxFailures?: number;
  /** How many workers the observer allows to be upgraded at once; as many as the plan says if undefined. */
  readonly allowed?: number;
  /** Changes the requests of an actor, to plant a mistake. */
  readonly tamper?: (actor: string, caller: Caller) => Caller;
  /** True for a second controller, which takes over when the first one does not renew its lease. */
  readonly hasStandby?: boolean;
  /** Called every second of simulated time. */
  readonly everySecond?: (lab: Lab, second: number) => void;
}

/** The parts of a run that a mishap may change. */
export interface Lab {
  readonly processes: LabProcesses;
  /** Aborts the plan, as a person would. */
  abort(): void;
}

export interface Verdict {
  /** The final state of the plan; `stuck` if it never ended. */
  readonly end: string;
  readonly reason: string;
  readonly violations: readonly string[];
  /** Seconds of made-up time from the plan to its end. */
  readonly seconds: number;
}

/** The most seconds that a run may take, far more than any run needs with a lease, a request deadline and some pauses. */
const PATIENCE_S = 1_800;
/** The number of seconds after the end of the plan within which everything must become idle. */
const REST_S = 300;

export async function runLab(options: RunOptions): Promise<Verdict> {
  const run = new Run(options);
  try {
    return await run.play();
  } finally {
    await run.stop();
  }
}

class Run implements Lab {
  readonly clock = new FakeClock();
  readonly #options: RunOptions;
  readonly #random: () => number;
  readonly processes: LabProcesses;
  readonly #over = new AbortController();
  #server: Awaited<ReturnType<typeof startApiServer>> | undefined;

  constructor(options: RunOptions) {
    this.#options = options;
    this.#random = seededRandom(options.seed);
    const { tape, tamper } = options;
    const callerFor = (actor: string): Caller =>
      tamper?.(actor, this.#serverCaller()) ?? this.#serverCaller();
    this.processes = new LabProcesses({ clock: this.clock, tape, callerFor });
  }

  async play(): Promise<Verdict> {
    const { controllers, workers, everySecond } = this.#options;
    const server = await startApiServer({ clock: this.clock });
    this.#server = server;
    const admin = clientOver(server.caller);
    const setUp = async (): Promise<void> => {
      await installKinds(admin);
      for (const name of workers) {
        await addNode(admin, name);
        await addPod(admin, name);
      }
    };
    await this.clock.runUntil(setUp());
    const [hosts, observer] = this.#build(server, admin);
    this.#watch(admin, observer);
    this.processes.startAll();
    const isRegistered = (): boolean =>
      server.objects('autopilot.k0sproject.io', 'controlnodes').length === controllers.length;
    while (!isRegistered()) await this.clock.advance(1_000);
    await applyPlan(admin, this.#options);
    const agents = hosts.map(({ agent }) => agent);
    let seconds = 0;
    for (; seconds < PATIENCE_S && observer.end === undefined; seconds++) {
      everySecond?.(this, seconds);
      await this.clock.advance(1_000);
    }
    const isRestless = (): boolean =>
      observer.leftovers().length > 0 || agents.some(({ isIdle }) => !isIdle);
    for (let waited = 0; waited < REST_S && isRestless(); waited++) {
      everySecond?.(this, seconds + waited);
      await this.clock.advance(1_000);
    }
    const busy = agents.some(({ isIdle }) => !isIdle) ? ['an agent is not idle'] : [];
    const end = observer.end ?? 'stuck';
    const violations = [...observer.violations, ...observer.leftovers(), ...busy];
    return { end, reason: observer.reason, violations, seconds };
  }

  async stop(): Promise<void> {
    this.#over.abort();
    this.processes.stopAll();
    await this.#server?.stop();
  }

  abort(): void {
    const metadata = { annotations: { [ABORT_ANNOTATION]: 'enough' } };
    void clientOver(this.#serverCaller()).patch(plans, PLAN_NAME, { metadata }, { type: 'merge' });
  }

  /** Registers the processes of the run without starting them. */
  #build(server: Awaited<ReturnType<typeof startApiServer>>, admin: KubeClient) {
    const {
      controllers,
      workers,
      concurrent,
      allowed = concurrent,
      payload = 'good',
      shards,
    } = this.#options;
    const { payloadOf, maxFailures } = this.#options;
    const random = this.#random;
    const hosts: { host: LabHost; agent: LabAgent; address: string }[] = [];
    const add = (name: string, role: 'controller' | 'worker'): LabHost => {
      const host = new LabHost(
        name,
        OLD,
        this.clock,
        (file) => (file === OLD || payloadOf?.includes(name) === false ? 'good' : payload),
        () => {
          observer.lookAtHosts();
          const { service } = host.state;
          // Uses the agent's clock, because the agent and the kubelet run on the same machine.
          const clock = this.processes.clockOf(`agent ${name}`);
          if (role === 'worker' && service?.life === 'up')
            void tellVersion(admin, name, service.file, rfc3339(clock.now()));
        },
      );
      const address = `10.0.0.${hosts.length + 1}`;
      const agent = new LabAgent({ host, role, address, random });
      hosts.push({ host, agent, address });
      this.processes.register(`agent ${name}`, (client, stop, clock) =>
        agent.start(client, stop, clock),
      );
      return host;
    };
    const observer = new LabObserver({
      server,
      controllers: controllers.map((name) => add(name, 'controller')),
      workers: workers.map((name) => add(name, 'worker')),
      concurrent: allowed,
      hasBundles: this.#options.hasBundles === true,
    });
    const dialect = shards ? { ...autopilot, sharding: shards } : autopilot;
    let terms = 0;
    const isReady = (address: string): boolean =>
      hosts.some((each) => each.address === address && each.host.state.service?.life === 'up');
    for (const actor of this.#options.hasStandby === true
      ? ['controller', 'standby']
      : ['controller']) {
      this.processes.register(actor, (client, stop, clock) => {
        const identity = `${actor}-${++terms}`;
        // A controller process that fails is restarted.
        const running = runLabController(
          { dialect, client, identity, clock, random, isReady, maxFailures },
          stop,
        );
        running.catch(() => stop.aborted || this.processes.crash(actor));
      });
    }
    return [hosts, observer] as const;
  }

  #serverCaller() {
    if (!this.#server) throw new Error('the server is not started yet');
    return this.#server.caller;
  }

  #watch(admin: KubeClient, observer: LabObserver): void {
    const resources: readonly Resource[] = [controlNodes, nodes];
    for (const resource of resources) {
      const informer = createInformer(admin, resource, { clock: this.clock });
      informer.addHandler({
        added: (object) => observer.lookAtObject(object),
        updated: (object) => observer.lookAtObject(object),
      });
      void informer.run(this.#over.signal);
    }
  }
}
