/** Follows all plans and their NodeRollouts for a page. */
import { nodeRollouts } from '../../api/kinds.ts';
import type { NodeRollout } from '../../api/refit/node-rollout.ts';
import { nodes } from '../../kube/resources.ts';
import { isForbidden, isNotFound } from '../../kube/status-error.ts';
import { tryList } from '../../kube/try-list.ts';
import { createInformer } from '../../kube/watch/informer.ts';
import type { Clock } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import type { Loaded } from '../status/load.ts';
import type { Session } from '../status/status-session.ts';
import { watchPlans } from '../status/watch-plans.ts';
import type { Seen } from './make-state.ts';

/**
 * Yields what the user may see after each change, until the session is aborted. It adds a sentence to `missing` for each
 * right that the user does not have.
 */
export async function* followPlans(
  session: Session,
  clock: Clock,
  missing: string[],
): AsyncGenerator<Seen> {
  const waking: { wake?: () => void } = {};
  const rollouts = await followRollouts(session, missing, () => waking.wake?.());
  const onWake = (wake: () => void): void => {
    waking.wake = wake;
  };
  let followed: readonly Loaded[] = [];
  const onFollowed = (objects: readonly Loaded[]): void => {
    followed = objects;
  };
  const options = { isEndless: true, onWake, onFollowed };
  for await (const status of watchPlans(session, clock, options))
    yield { status, rollouts: rollouts(), missing, labelsOf: labelsIn(followed) };
}

/** Returns a function that finds the labels of a Node by its name; undefined if the Node does not exist. */
function labelsIn(followed: readonly Loaded[]): NonNullable<Seen['labelsOf']> {
  const worlds = followed.map(({ world }) => world);
  return (name) => {
    for (const world of worlds) {
      const found = world.get(nodes, name);
      if (found !== undefined) return found.metadata.labels;
    }
    return undefined;
  };
}

/**
 * Returns a function that lists the NodeRollouts. The list is empty if the cluster lacks the kind, or if the user does
 * not have the right to list it.
 */
async function followRollouts(
  { client, abort }: Session,
  missing: string[],
  onChange: () => void,
): Promise<() => readonly NodeRollout[]> {
  try {
    await tryList(client, nodeRollouts, { abort });
  } catch (error) {
    if (isForbidden(error)) missing.push(messageOf(error));
    else if (!isNotFound(error)) throw error;
    return () => [];
  }
  const informer = createInformer(client, nodeRollouts);
  void informer.run(abort);
  informer.addHandler({ added: onChange, updated: onChange, deleted: onChange });
  return () => informer.list();
}
