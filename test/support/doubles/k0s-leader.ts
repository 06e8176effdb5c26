/**
 * The double of a k0s leader without a machine. It takes part in the leader election, and carries out plans while it
 * leads.
 */
import { randomBytes } from 'node:crypto';
import { plans } from '../../../src/api/autopilot/plan.ts';
import { nodes } from '../../../src/kube/resources.ts';
import { controlNodes } from '../../../src/signal/names.ts';
import { DrainLimits } from './agent/kubectl-drain.ts';
import { KILLED } from './agent/payload.ts';
import type { Surroundings } from './k0s-process.ts';
import { leadingControllers } from './leader/leading.ts';
import { RemovedApiCheck } from './leader/removed-apis.ts';
import { quirksOf, VARIANTS, type Variant } from './quirks.ts';
import { Manager } from './runtime/manager.ts';
import { Turns } from './runtime/turns.ts';

export interface LeaderOptions extends Surroundings {
  readonly variant: Variant;
}

export class K0sLeader {
  readonly #options: LeaderOptions;
  readonly #stop = new AbortController();
  readonly #turns: Turns;

  constructor(options: LeaderOptions) {
    this.#options = options;
    const { centralCordoning } = quirksOf(VARIANTS[options.variant]);
    const identity = randomBytes(16).toString('hex');
    // The client must keep working after the signal to stop, because the candidate releases the Lease only then.
    const client = options.connect(new AbortController().signal);
    const candidate = { ...options, client, identity, centralCordoning };
    this.#turns = new Turns(
      candidate,
      (leads, abort) => Promise.resolve(this.#build(leads, abort)),
      this.#stop.signal,
    );
  }

  start(): void {
    this.#turns.start();
  }

  /** True while the double is the leader and the controllers of the leader are running. */
  get leads(): boolean {
    return this.#turns.state === 'leading';
  }

  /** Stops the double as SIGTERM stops k0s: the Lease is released. */
  async stop(): Promise<void> {
    this.#stop.abort(new Error('terminated'));
    await this.#turns.release();
    await this.#turns.ended();
  }

  /** Stops the double as SIGKILL stops k0s: the Lease is not released, but expires. */
  async crash(): Promise<void> {
    this.#stop.abort(KILLED);
    await this.#turns.ended();
  }

  #build(leads: boolean, abort: AbortSignal): Manager {
    const { variant, connect, log, clock } = this.#options;
    const client = connect(abort);
    const check = new RemovedApiCheck();
    return new Manager({
      client,
      log,
      abort,
      resources: [controlNodes, nodes, plans],
      controllers: (cache) => {
        const findRemovedApis = async (version: string) => await check.find(client, version);
        const own = {
          quirks: quirksOf(VARIANTS[variant]),
          limits: new DrainLimits(clock),
          findRemovedApis,
        };
        return leads ? leadingControllers({ ...this.#options, ...own, client, cache, abort }) : [];
      },
    });
  }
}
