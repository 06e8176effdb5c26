/** Owns keeping the mark on the node's lease: it goes with the node, and a node that joins again needs a new one. */
import { isRefusal } from '../../kube/status-error.ts';
import { backoffDelay } from '../../util/backoff.ts';
import type { Clock } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import type { Logger } from '../../util/log.ts';
import type { SignalObject } from '../object/signal-object.ts';
import { changeOrTimeout } from '../wake-up.ts';

export interface StampParts {
  /** The Node, followed by somebody else. */
  readonly node: SignalObject;
  readonly stamp: (abort: AbortSignal) => Promise<void>;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
}

const RETRY = { base: 200, cap: 30_000 };
const REFUSED = 'may not mark the lease of the node: where it bears no mark, no leader drains it, and the agent does';

/**
 * Works until `stop` aborts; never rejects: until the mark is there, a leader that cordons does not drain this node. A mark
 * that is refused is tried again too: right after its start an API server refuses what it allows a moment later, and rights
 * may be granted.
 */
export async function keepMarked({ node, stamp, clock, random, log }: StampParts, stop: AbortSignal): Promise<void> {
  let stamped: string | undefined;
  let refused: string | undefined;
  for (let failures = 0; !stop.aborted; ) {
    const seen = node.version;
    const uid = node.newest?.metadata.uid;
    let pauseMs: number | undefined;
    if (uid !== undefined && uid !== stamped) {
      try {
        await stamp(stop);
        [stamped, failures, refused] = [uid, 0, undefined];
        log.info('the leader may cordon this node');
      } catch (error) {
        pauseMs = backoffDelay(failures++, { ...RETRY, random });
        const reason = messageOf(error);
        if (!isRefusal(error)) {
          if (!stop.aborted) log.warn('cannot mark the lease of the node', { reason, pauseMs });
        } else if (reason !== refused) {
          log.error(REFUSED, { reason });
          refused = reason;
        }
      }
    }
    await changeOrTimeout(node, seen, pauseMs, { clock, stop });
  }
}
