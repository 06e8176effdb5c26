/** Owns keeping the mark on the node's lease: it goes with the node, and a node that joins again needs a new one. */
import { backoffDelay } from '../../util/backoff.ts';
import type { Clock } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import type { Logger } from '../../util/log.ts';
import type { SignalObject } from '../signal-object.ts';
import { changeOrTimeout } from '../wake-up.ts';

export interface StampParts {
  /** The Node, followed by somebody else. */
  readonly node: SignalObject;
  readonly stamp: (signal: AbortSignal) => Promise<void>;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
}

const RETRY = { base: 200, cap: 30_000 };

/** Works until `stop` aborts; never rejects: until the mark is there, a leader that cordons and a node that it should cordon wait for each other. */
export async function keepStamped({ node, stamp, clock, random, log }: StampParts, stop: AbortSignal): Promise<void> {
  let stamped: string | undefined;
  for (let failures = 0; !stop.aborted; ) {
    const seen = node.version;
    const uid = node.newest?.metadata.uid;
    let pauseMs: number | undefined;
    if (uid !== undefined && uid !== stamped) {
      try {
        await stamp(stop);
        [stamped, failures] = [uid, 0];
        log.info('the leader may cordon this node');
      } catch (error) {
        pauseMs = backoffDelay(failures++, { ...RETRY, random });
        if (!stop.aborted) log.warn('cannot mark the lease of the node', { reason: messageOf(error), pauseMs });
      }
    }
    await changeOrTimeout(node, seen, pauseMs, { clock, stop });
  }
}
