/**
 * Runs the one worker on which the agent is measured: its host, the agent as it is shipped, and functions that write
 * what the leader would write.
 */
import { join } from 'node:path';
import { type Cluster, startCluster } from '../../sandbox/cluster/cluster.ts';
import type { Plane } from '../../sandbox/cluster/plane.ts';
import type { Host } from '../../sandbox/hosts/host.ts';
import { nodes } from '../../src/kube/resources.ts';
import { createInformer } from '../../src/kube/watch/informer.ts';
import {
  decodeSignal,
  encodeAgentPolicy,
  encodeSignal,
  type SignalCommand,
  type SignalData,
} from '../../src/signal/annotations.ts';
import { type Clock, rfc3339 } from '../../src/util/clock.ts';
import { buildRefit } from '../../tools/build/refit.ts';
import { asShipped } from '../shipped.ts';

export interface AgentRigParts {
  readonly plane: Plane;
  /** The directory for all files of the rig. The caller removes it. */
  readonly directory: string;
  readonly clock: Clock;
  readonly abort: AbortSignal;
  /** The version that is installed at the start. */
  readonly version: string;
  readonly onService: (host: string, running: boolean) => void;
}

/** The address of a version, and the hash of its bytes. */
export interface Payload {
  readonly url: string;
  readonly sha256: string;
}

const RESTART_DELAY_MS = 100;
/** The benchmark writes the statuses that the leader would write. The agent makes no wait that it does not need. */
const POLICY = encodeAgentPolicy({ cordoning: 'leader', soakMs: 0 });

export class AgentRig implements AsyncDisposable {
  readonly host: Host;
  readonly clock: Clock;
  readonly abort: AbortSignal;
  readonly #cluster: Cluster;
  /**
   * Maps each status of the newest signal to the time at which a watch showed it, in milliseconds of the monotonic
   * clock.
   */
  readonly #seen = new Map<string, number>();
  readonly #stop = new AbortController();
  #sent: SignalData | undefined;
  #wake: () => void = () => undefined;

  private constructor(cluster: Cluster, host: Host, parts: Pick<AgentRigParts, 'clock' | 'abort'>) {
    this.#cluster = cluster;
    this.host = host;
    this.clock = parts.clock;
    this.abort = parts.abort;
  }

  static async start(parts: AgentRigParts): Promise<AgentRig> {
    const { plane, version, onService } = parts;
    const directory = join(parts.directory, 'agent');
    const command = await buildRefit(join(directory, 'refit'));
    const cluster = await startCluster({
      plane,
      directory,
      controllers: 0,
      workers: 1,
      version,
      offers: [],
      restartDelayMs: RESTART_DELAY_MS,
      onService,
      refit: asShipped(command),
    });
    const [host] = cluster.hosts;
    if (host === undefined) throw new Error('the cluster has no host');
    const rig = new AgentRig(cluster, host, parts);
    await rig.#watch();
    return rig;
  }

  async send(command: SignalCommand): Promise<void> {
    this.#seen.clear();
    this.#sent = { planId: 'bench', created: new Date(this.clock.now()).toISOString(), command };
    await this.#write(encodeSignal(this.#sent));
  }

  /** Writes a status as the leader does. */
  async advance(status: string): Promise<void> {
    if (this.#sent === undefined) throw new Error('no signal was sent');
    const timestamp = rfc3339(this.clock.now());
    await this.#write(encodeSignal({ ...this.#sent, status: { status, timestamp } }));
  }

  /**
   * Resolves with the time at which the status was seen, in milliseconds of the monotonic clock. Rejects if the agent
   * fails, or if the signal of the rig aborts.
   */
  async reached(status: string): Promise<number> {
    for (;;) {
      this.abort.throwIfAborted();
      const at = this.#seen.get(status);
      if (at !== undefined) return at;
      const failure = ['Failed', 'FailedDownload'].find((each) => this.#seen.has(each));
      if (failure !== undefined) throw new Error(`the agent reports ${failure}`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Kills the agent with SIGKILL, and starts another agent. */
  async replaceAgent(): Promise<void> {
    const agent = this.#cluster.agents.get(this.host.name);
    if (agent === undefined) throw new Error('no agent runs');
    process.kill(agent.pid, 'SIGKILL');
    await agent.stop();
    await this.#cluster.startAgent(this.host);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#cluster.stop();
  }

  async #write(annotations: Record<string, string>): Promise<void> {
    const patch = { metadata: { annotations: { ...annotations, ...POLICY } } };
    await this.#cluster.client.patch(nodes, this.host.name, patch, { type: 'merge' });
  }

  async #watch(): Promise<void> {
    const watching = AbortSignal.any([this.abort, this.#stop.signal]);
    watching.addEventListener('abort', () => this.#wake(), { once: true });
    const informer = createInformer(this.#cluster.client, nodes, {
      fieldSelector: `metadata.name=${this.host.name}`,
    });
    informer.addHandler({
      updated: ({ metadata }) => {
        const seen = decodeSignal(metadata.annotations);
        const status = seen?.status?.status;
        if (status === undefined || seen?.created !== this.#sent?.created || this.#seen.has(status))
          return;
        this.#seen.set(status, this.clock.monotonic());
        this.#wake();
      },
    });
    void informer.run(watching);
    await informer.whenSynced(watching);
  }
}
