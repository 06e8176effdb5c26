/** Owns what the agent does for the node it runs on: keeping pods away before an update, and letting them back after it. */
import { cordonOwner, withCordon, withoutAnyCordon, withoutCordon } from '../../drain/cordon.ts';
import { DrainRefusedError } from '../../drain/drain.ts';
import type { KubeClient, RequestOptions } from '../../kube/client.ts';
import { leases, nodes } from '../../kube/resources.ts';
import { isConflict, isNotFound, isRefusal } from '../../kube/status-error.ts';
import type { KubeObject, Lease, Node } from '../../kube/types.ts';
import type { AgentDrain } from '../../signal/agent-policy.ts';
import { backoffDelay } from '../../util/backoff.ts';
import { type Clock, sleep } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import type { Logger } from '../../util/log.ts';
import type { Cordoner, Duties } from './duties.ts';
import { LeaseObserver } from './leader-view.ts';
import type { LeaseMark } from './lease-mark.ts';
import { OwnDrain } from './own-drain.ts';

export interface NodeDutiesParts {
  readonly client: KubeClient;
  /** Name of the host's Node; undefined where no pods run on the host. */
  readonly nodeName: () => string | undefined;
  /** On the lease of that Node. */
  readonly mark: Pick<LeaseMark, 'isToBeExpected'>;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
}

const LEADER = { namespace: 'k0s-autopilot', name: 'k0s-autopilot-controller' };
/** Whoever looks watches a process meanwhile, and asks again. */
const LOOK_DEADLINE_MS = 2_000;
/** As the agent's own reports are tried again. */
const RETRY = { base: 50, cap: 2_000 };
/** Milliseconds for which an API server may refuse what it allows: right after its start it knows no rights yet. */
const REFUSED_MS = 60_000;

export class NodeDuties implements Duties {
  readonly #parts: NodeDutiesParts;
  readonly #leader: LeaseObserver;
  #problem = '';

  constructor(parts: NodeDutiesParts) {
    this.#parts = parts;
    this.#leader = new LeaseObserver(parts.clock);
  }

  async whoCordons(_object: KubeObject, abort: AbortSignal): Promise<Cordoner> {
    try {
      const cordoner = this.#leader.judge(await this.#readLease(abort));
      return cordoner === 'leader' && !(await this.#isMarked(abort)) ? 'self' : cordoner;
    } catch (error) {
      abort.throwIfAborted();
      this.#sayOnce('cannot tell who cordons', messageOf(error));
      return 'unknown';
    }
  }

  async readNode(abort: AbortSignal): Promise<Node | undefined> {
    return await this.#readNode({ abort, deadlineMs: LOOK_DEADLINE_MS });
  }

  async hasCordon(abort: AbortSignal): Promise<boolean> {
    const node = await this.#readNode({ abort });
    return node !== undefined && cordonOwner(node) !== undefined;
  }

  async cordonAndDrain(journalOwner: string, asked: AgentDrain, abort: AbortSignal): Promise<void> {
    if (asked.enabled === false) return;
    using drain = new OwnDrain(asked, this.#parts, abort);
    await this.#persist(drain.abort, async () => {
      const name = this.#parts.nodeName();
      if (name === undefined) return;
      await this.#change((node) => withCordon(node, journalOwner), drain.abort);
      await drain.run(name);
    });
  }

  async takeBack(whose: 'ours' | 'always', abort: AbortSignal): Promise<void> {
    await this.#change(whose === 'always' ? withoutAnyCordon : withoutCordon, abort);
  }

  /** A leader leaves a node to itself whose lease bears no mark. */
  async #isMarked(abort: AbortSignal): Promise<boolean> {
    const name = this.#parts.nodeName();
    return name === undefined || (await this.#parts.mark.isToBeExpected(name, abort));
  }

  async #readLease(abort: AbortSignal): Promise<Lease | undefined> {
    const { name, namespace } = LEADER;
    return await orAbsent(this.#parts.client.get(leases, name, { namespace, abort }));
  }

  async #readNode(options: RequestOptions): Promise<Node | undefined> {
    const name = this.#parts.nodeName();
    return name === undefined ? undefined : await orAbsent(this.#parts.client.get(nodes, name, options));
  }

  /** Nothing where the host has no node, or nothing is to be changed; rejects with a conflict where others were quicker. */
  async #change(change: (node: Node) => Node, abort: AbortSignal): Promise<void> {
    const node = await this.#readNode({ abort });
    if (node === undefined) return;
    const changed = change(node);
    if (changed !== node) await this.#parts.client.replace(nodes, changed, { abort });
  }

  /** Does it again, with growing pauses, until it is done, or it is certain that it cannot be. */
  async #persist(abort: AbortSignal, work: () => Promise<void>): Promise<void> {
    const { clock, random, log } = this.#parts;
    let refusedAt = Number.POSITIVE_INFINITY;
    for (let attempt = 0; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        abort.throwIfAborted();
        if (error instanceof DrainRefusedError) throw error;
        refusedAt = isRefusal(error) ? Math.min(refusedAt, clock.monotonic()) : Number.POSITIVE_INFINITY;
        if (clock.monotonic() - refusedAt >= REFUSED_MS) throw error;
        if (!isConflict(error)) log.warn('the node is not empty yet', { reason: messageOf(error) });
        await sleep(clock, backoffDelay(attempt, { ...RETRY, random }), abort);
      }
    }
  }

  #sayOnce(message: string, reason: string): void {
    if (this.#problem !== reason) this.#parts.log.warn(message, { reason });
    this.#problem = reason;
  }
}

async function orAbsent<T>(found: Promise<T>): Promise<T | undefined> {
  try {
    return await found;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
