/** Sends signals, each on its object exactly as it was observed. */
import type { KubeObject } from '../../kube/types.ts';
import { settleAll } from '../../util/settle.ts';
import type { World } from '../dialect.ts';
import type { Signalling } from '../model/decided.ts';
import type { Rollout } from '../model/recorded.ts';
import { carryOut, type Effects, isCurrent } from './effects.ts';

export interface Sent {
  readonly signalling: Signalling;
  readonly result: 'written' | 'outdated';
}

/** Keeps a server busy, and ends soon enough that the check of the plan still holds. */
const SIGNALS_AT_ONCE = 100;

/**
 * An object that has changed is not written: its change arrives by the watch, and the decision is taken again.
 *
 * The object's version alone says nothing about the plan: a cache may show an old plan beside a new object that a later
 * command has signalled. So the plan and the targets' status shards are read again from the API server before the writes:
 * if they are unchanged, nobody can have signalled an object that is unchanged too.
 */
export async function send<P extends KubeObject>(
  effects: Effects<P>,
  world: World,
  plan: P,
  rollout: Rollout,
  signals: readonly Signalling[],
): Promise<Sent[]> {
  const sent: Sent[] = [];
  for (let first = 0; first < signals.length; first += SIGNALS_AT_ONCE) {
    const batch = signals.slice(first, first + SIGNALS_AT_ONCE);
    const prepared = batch.map((signalling) => ({
      signalling,
      instruction: effects.dialect.signal.send(world, rollout, signalling, plan),
    }));
    const targets = batch.map(({ target }) => target);
    const isPlanCurrent = await isCurrent(effects, world, plan, targets);
    const results = prepared.map(async ({ signalling, instruction }): Promise<Sent> => {
      const isWritten = isPlanCurrent && instruction !== undefined && (await carryOut(effects, instruction));
      return { signalling, result: isWritten ? 'written' : 'outdated' };
    });
    sent.push(...(await settleAll(results)));
  }
  return sent;
}
