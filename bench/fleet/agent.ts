/**
 * Simulates an agent with a state machine, so that thousands of agents run in one process. It watches its own object
 * with the code of the real agent. It reports the steps of an update, which take some seconds and do nothing.
 */
import { type OwnObject, ownObject } from '../../src/agent/object/own-object.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import type { KubeObject, Resource } from '../../src/kube/resources.ts';
import { isConflict } from '../../src/kube/status-error.ts';
import {
  decodeSignal,
  encodeReport,
  encodeSignal,
  type SignalData,
} from '../../src/signal/annotations.ts';
import type { SignalStatus } from '../../src/signal/names.ts';
import { type Clock, rfc3339, sleep } from '../../src/util/clock.ts';
import { silentLogger } from '../../src/util/log.ts';

export interface AgentParts {
  readonly client: KubeClient;
  readonly resource: Resource;
  readonly name: string;
  readonly clock: Clock;
  readonly random: () => number;
  /** The mean duration in milliseconds of each step that takes time. */
  readonly stepMs: number;
  /** Called when the new version runs. The kubelet of the node would then report the new version. */
  readonly updated: (name: string, version: string) => Promise<void>;
}

/**
 * Maps a status to the status that the agent reports next. `Cordoning` and `UnCordoning` are missing, because the
 * leader ends them.
 */
const NEXT: Readonly<Record<string, SignalStatus | undefined>> = {
  '': 'Downloading',
  Downloading: 'Cordoning',
  ApplyingUpdate: 'Restart',
  Restart: 'UnCordoning',
};

/** The steps in which a node works. The other steps are only reports, which take no time. */
const WORKING = new Set(['Downloading', 'ApplyingUpdate', 'Restart']);

export class SimulatedAgent {
  readonly #parts: AgentParts;
  readonly #own: OwnObject;
  #isBusy = false;

  constructor(parts: AgentParts) {
    this.#parts = parts;
    this.#own = ownObject({ ...parts, log: silentLogger });
  }

  /** Runs until `abort` aborts. It never rejects because of an error of the API server. */
  async run(abort: AbortSignal): Promise<void> {
    this.#own.onChange(() => void this.#look(abort));
    await this.#own.follow(abort);
  }

  async #look(abort: AbortSignal): Promise<void> {
    if (this.#isBusy || abort.aborted) return;
    this.#isBusy = true;
    try {
      for (let signalled = this.#due(); signalled && !abort.aborted; signalled = this.#due()) {
        await this.#step(signalled, abort);
      }
    } catch (error) {
      if (!abort.aborted) throw error;
    } finally {
      this.#isBusy = false;
    }
  }

  #due(): SignalData | undefined {
    const signalled = decodeSignal(this.#own.newest?.metadata.annotations);
    return signalled && NEXT[signalled.status?.status ?? ''] ? signalled : undefined;
  }

  async #step(signalled: SignalData, abort: AbortSignal): Promise<void> {
    const { clock, random, stepMs, name, updated } = this.#parts;
    const status = signalled.status?.status ?? '';
    const next = NEXT[status];
    if (next === undefined) return;
    if (WORKING.has(status)) await sleep(clock, stepMs * (0.5 + random()), abort);
    if (status === 'Restart') await updated(name, signalled.command.version);
    await this.#report(signalled, next);
  }

  /**
   * Reports the status. A conflict means that there is a newer object. The agent gets it from the watch, or from the
   * read after the conflict.
   */
  async #report(signalled: SignalData, status: SignalStatus): Promise<void> {
    const { newest } = this.#own;
    if (!newest) return;
    try {
      await this.#own.write(this.#withStatus(newest, signalled, status));
    } catch (error) {
      if (!isConflict(error)) throw error;
      await this.#own.refresh();
    }
  }

  #withStatus(object: KubeObject, signalled: SignalData, status: SignalStatus): KubeObject {
    const timestamp = rfc3339(this.#parts.clock.now());
    const report = encodeReport({
      created: signalled.created,
      from: 'v1.36.3+k0s.0',
      spent: { [status]: 1000 },
    });
    const signal = encodeSignal({ ...signalled, status: { status, timestamp } });
    const annotations = { ...object.metadata.annotations, ...signal, ...report };
    return { ...object, metadata: { ...object.metadata, annotations } };
  }
}
