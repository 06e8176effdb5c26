/**
 * The autopilot of one k0s process on a machine, from its start to its end. Nothing that it remembers outlives the
 * process.
 */
import { randomBytes } from 'node:crypto';
import { plans } from '../../../src/api/autopilot/plan.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { nodes } from '../../../src/kube/resources.ts';
import { controlNodes } from '../../../src/signal/names.ts';
import { type Clock, sleep } from '../../../src/util/clock.ts';
import { messageOf } from '../../../src/util/errors.ts';
import type { Logger } from '../../../src/util/log.ts';
import { airgapControllers } from './agent/airgap-phases.ts';
import { setUpControlNode } from './agent/control-node.ts';
import { cordonControllers, followerActs } from './agent/cordon-phases.ts';
import { DrainLimits } from './agent/kubectl-drain.ts';
import { stampNodeLease } from './agent/node-lease.ts';
import { type AgentParts, type Machine, RestartTracker } from './agent/parts.ts';
import { KILLED } from './agent/payload.ts';
import { updateControllers } from './agent/update-phases.ts';
import { leadingControllers } from './leader/leading.ts';
import { RemovedApiCheck } from './leader/removed-apis.ts';
import { type Quirks, quirksOf } from './quirks.ts';
import { type Cache, type Controller, Manager } from './runtime/manager.ts';
import { Turns } from './runtime/turns.ts';
import { MANAGER_ATTEMPTS, type Times } from './times.ts';

export type Role = 'controller' | 'controller+worker' | 'worker';

/** Everything that a double needs to use the API. */
export interface Surroundings {
  /** Returns a client with the user of the process. Its calls end when the signal aborts. */
  readonly connect: (abort: AbortSignal) => KubeClient;
  readonly times: Times;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  /** Chooses the next target if the process leads. */
  readonly pick: (names: readonly string[]) => string;
  /** Requests `/readyz` at the address of one controller if the process leads. */
  readonly askReadyz: (host: string) => Promise<number>;
}

export interface ProcessParts extends Surroundings {
  readonly name: string;
  readonly role: Role;
  readonly machine: Machine;
  /** The version of the running program. */
  readonly version: string;
  /** The address of the API server on a controller. */
  readonly address: string;
}

export class K0sProcess {
  readonly #parts: ProcessParts;
  readonly #quirks: Quirks;
  readonly #limits: DrainLimits;
  readonly #tracker = new RestartTracker();
  readonly #removedApis = new RemovedApiCheck();
  readonly #stop = new AbortController();
  #turns: Turns | undefined;
  #manager: Manager | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(parts: ProcessParts) {
    this.#parts = parts;
    this.#quirks = quirksOf(parts.version);
    this.#limits = new DrainLimits(parts.clock);
  }

  start(): void {
    const run = this.#parts.role === 'worker' ? this.#runWorker() : this.#runController();
    this.#running = run.catch((error: unknown) => {
      if (!this.#stop.signal.aborted)
        this.#parts.log.error('autopilot ended', { problem: messageOf(error) });
    });
  }

  get isAtWork(): boolean {
    return this.#manager?.begun ?? (this.leads || this.#turns?.state === 'pending');
  }

  get leads(): boolean {
    return this.#turns?.state === 'leading';
  }

  /** Stops the process as SIGTERM does: the Lease is released. */
  async terminate(): Promise<void> {
    this.#stop.abort(new Error('terminated'));
    await this.#running;
    await this.#turns?.release().catch((error: unknown) => {
      this.#parts.log.warn('the lease was not released', { problem: messageOf(error) });
    });
    await this.#ended();
  }

  /** Stops the process as SIGKILL does: it has no time to release or write anything. */
  async kill(): Promise<void> {
    this.#stop.abort(KILLED);
    await this.#running;
    await this.#ended();
  }

  async #ended(): Promise<void> {
    await this.#turns?.ended();
    await this.#manager?.ended();
  }

  async #runWorker(): Promise<void> {
    const { name, times, clock, log, connect } = this.#parts;
    const { signal: abort } = this.#stop;
    await sleep(clock, times.boot, abort);
    for (let attempt = 1; attempt <= MANAGER_ATTEMPTS; attempt++) {
      try {
        if (this.#quirks.centralCordoning) await stampNodeLease(connect(abort), name);
        this.#manager = this.#managerOf([nodes, plans], abort, (parts) => [
          ...updateControllers(parts, nodes),
          ...cordonControllers({ ...parts, ...this.#ownCordons(parts) }, nodes),
          ...airgapControllers(parts),
        ]);
        return;
      } catch (error) {
        log.warn('the manager does not start', { problem: messageOf(error) });
        await sleep(clock, times.managerRetry, abort);
      }
    }
    log.error('given up until the next start');
  }

  async #runController(): Promise<void> {
    const { times, clock, connect } = this.#parts;
    const { signal: abort } = this.#stop;
    await sleep(clock, times.boot, abort);
    await this.#setUp();
    const identity = randomBytes(16).toString('hex');
    // The client must keep working after the signal to stop, because the candidate releases the Lease only then.
    const client = connect(new AbortController().signal);
    const candidate = {
      ...this.#parts,
      client,
      identity,
      centralCordoning: this.#quirks.centralCordoning,
    };
    this.#turns = new Turns(
      candidate,
      async (leads, until) => await this.#build(leads, until),
      abort,
    );
    this.#turns.start();
  }

  async #setUp(): Promise<void> {
    const { name, role, address, version, times, clock, log, connect } = this.#parts;
    const { signal: abort } = this.#stop;
    const mode = role === 'controller' ? 'controller' : 'controller+worker';
    for (;;) {
      try {
        return await setUpControlNode(connect(abort), { name, mode, address, version });
      } catch (error) {
        log.warn('the ControlNode is not set up', { problem: messageOf(error) });
        await sleep(clock, times.setupRetry, abort);
      }
    }
  }

  async #build(leads: boolean, abort: AbortSignal): Promise<Manager> {
    const { name, role, connect } = this.#parts;
    const { centralCordoning, airgapOnControllers } = this.#quirks;
    const isWorkerToo = role === 'controller+worker';
    if (isWorkerToo && centralCordoning) await stampNodeLease(connect(abort), name);
    return this.#managerOf([controlNodes, nodes, plans], abort, (parts) => {
      const own = { ...parts, ...this.#ownCordons(parts) };
      const cordonsOwn = !leads || !centralCordoning;
      return [
        ...updateControllers(parts, controlNodes),
        ...(isWorkerToo && airgapOnControllers ? airgapControllers(parts) : []),
        ...(cordonsOwn
          ? [...cordonControllers(own, controlNodes), ...cordonControllers(own, nodes)]
          : []),
        ...(leads ? this.#leading(parts) : []),
      ];
    });
  }

  #leading(parts: AgentParts): Controller[] {
    const { pick, askReadyz } = this.#parts;
    const findRemovedApis = async (version: string) =>
      await this.#removedApis.find(parts.client, version);
    return leadingControllers({
      ...parts,
      pick,
      askReadyz,
      findRemovedApis,
      limits: this.#limits,
      own: parts.name,
    });
  }

  #ownCordons({ name, client, clock }: AgentParts) {
    const acts = this.#quirks.centralCordoning
      ? followerActs(client, clock)
      : () => Promise.resolve(true);
    return { limits: this.#limits, owns: (object: string) => object === name, acts };
  }

  #managerOf(
    resources: ConstructorParameters<typeof Manager>[0]['resources'],
    abort: AbortSignal,
    controllers: (parts: AgentParts) => Controller[],
  ): Manager {
    const { connect, log } = this.#parts;
    const client = connect(abort);
    const common = { ...this.#parts, quirks: this.#quirks, tracker: this.#tracker, client, abort };
    return new Manager({
      client,
      log,
      abort,
      resources,
      controllers: (cache: Cache) => controllers({ ...common, cache }),
    });
  }
}
