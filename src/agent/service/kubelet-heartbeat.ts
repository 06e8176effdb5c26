/** Owns whether what a node tells of its readiness is news from after the restart, or was left standing by a kubelet that is gone. */
import type { Node } from '../../kube/types.ts';
import type { Clock } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import type { Logger } from '../../util/log.ts';
import type { Journal, UpdateJournal } from '../journal.ts';
import type { Duties } from '../maintenance/duties.ts';
import type { OwnNodeFacts } from '../step-input.ts';
import type { ProcessId } from './host.ts';

interface Looked {
  /** What carries the signals: the node itself, or what stands for a controller. */
  readonly newest: Node | undefined;
  readonly journal: Journal;
  /** The agent's time, in milliseconds. */
  readonly steady: () => number;
}

export interface KubeletHeartbeatParts {
  readonly duties: Pick<Duties, 'readNode'>;
  /** Milliseconds since the process was started; anything where nobody knows. */
  readonly ageOf: (process: ProcessId) => Promise<number>;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * A kubelet that is gone leaves Ready standing for as long as Kubernetes waits for it (`node-monitor-grace-period`, 40 to
 * 50 s). One that starts tells its conditions at once, whether they changed or not, and with them when it does. Its lease
 * would prove less: it is renewed before the kubelet has asked its container runtime.
 */
export class KubeletHeartbeat {
  readonly #parts: KubeletHeartbeatParts;
  /** Steady milliseconds since which the API server has had nothing newer than the restart. */
  #silentSince: number | undefined;
  #said = '';

  constructor(parts: KubeletHeartbeatParts) {
    this.#parts = parts;
  }

  /** Nothing where no new process is watched, and where nobody tells whether the node is Ready. */
  async see(
    { newest, journal, steady }: Looked,
    stop: AbortSignal,
  ): Promise<Pick<OwnNodeFacts, 'isReady' | 'silentMs'>> {
    if (journal.phase !== 'soaking') return this.#heard({});
    const { clock, duties } = this.#parts;
    const now = steady();
    // As the clock shows it now: where it was set meanwhile, the kubelet's was too.
    const startedAt = clock.now() - (now - (await this.#startOf(journal, now)));
    try {
      const seen = toldBy(newest);
      const ready = seen && isNews(seen, startedAt) ? seen : toldBy(await duties.readNode(stop));
      if (ready === undefined) return this.#heard({});
      if (isNews(ready, startedAt)) return this.#heard({ isReady: ready.status === 'True' });
    } catch (error) {
      stop.throwIfAborted();
      this.#silentSince = undefined;
      this.#sayOnce('cannot tell whether the kubelet is back', messageOf(error));
      return { silentMs: 0 };
    }
    this.#silentSince ??= now;
    this.#sayOnce('waiting for the kubelet', 'the node has told nothing since the restart');
    return { silentMs: now - this.#silentSince };
  }

  /**
   * Steady milliseconds: the kubelet before may have told something after the restart was ordered, as its service takes a
   * while to end. A start before that order, or after the first answer, is of a system that counts from somewhere else.
   */
  async #startOf({ fresh, since = Infinity, restartedAt = -Infinity }: UpdateJournal, now: number): Promise<number> {
    const startedAt = fresh === undefined ? restartedAt : now - (await this.#parts.ageOf(fresh));
    return startedAt > restartedAt && startedAt <= since ? startedAt : restartedAt;
  }

  #heard<T>(facts: T): T {
    this.#silentSince = undefined;
    this.#said = '';
    return facts;
  }

  #sayOnce(message: string, reason: string): void {
    if (this.#said !== message) this.#parts.log.info(message, { reason });
    this.#said = message;
  }
}

type Ready = NonNullable<NonNullable<Node['status']>['conditions']>[number];

/** Undefined where nobody tells: for a ControlNode, or a Node without a kubelet. */
function toldBy(object: Node | undefined): Ready | undefined {
  return object?.status?.conditions?.find(({ type }) => type === 'Ready');
}

/** Who does not tell when, as no kubelet does, is believed. */
function isNews({ lastHeartbeatTime }: Ready, startedAt: number): boolean {
  // It tells whole seconds.
  return !lastHeartbeatTime || Date.parse(lastHeartbeatTime) >= Math.floor(startedAt / 1000) * 1000;
}
