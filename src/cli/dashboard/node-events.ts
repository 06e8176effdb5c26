/** Reads the Events about one node for its drawer on the page. */
import type { KubeClient } from '../../kube/client.ts';
import { events } from '../../kube/resources.ts';
import { messageOf } from '../../util/errors.ts';
import { eventsOfRun } from '../report/run-events.ts';
import { targetsOf } from '../status/sentences.ts';
import { isOneWord } from './explain-node.ts';
import { keyOf, type Seen } from './make-state.ts';
import type { NodeEvents } from './state.ts';

/** The most Events that the drawer shows, the newest of them. */
const MOST_SHOWN = 20;
const NONE: NodeEvents = { events: [] };

/** Asks for the Events about a node of the plan with this key. */
export type AskEvents = (plan: string, node: string) => Promise<NodeEvents>;

/**
 * Resolves with the Events of the present run about the node; with none if the plan with this key does not have the node. If they
 * cannot be read, it resolves with the reason.
 */
export async function eventsAboutNode(
  { status }: Pick<Seen, 'status'>,
  key: string,
  node: string,
  client: Pick<KubeClient, 'listAll'>,
  abort: AbortSignal,
): Promise<NodeEvents> {
  const plan = status.plans.find((each) => keyOf(each) === key);
  const isTarget = plan !== undefined && targetsOf(plan).some(({ name }) => name === node);
  // A plan may list any text as the name of a node, and a comma would end the field selector.
  if (!isTarget || !isOneWord(node)) return NONE;
  const { namespace, started, created } = plan;
  const fieldSelector = `involvedObject.name=${node}`;
  try {
    const { items } = await client.listAll(events, { namespace: 'default', fieldSelector, abort });
    const about = { uid: undefined, namespace, nodes: [{ name: node }], from: started ?? created };
    const found = eventsOfRun(items, about).map(({ about: _node, ...shown }) => shown);
    return { events: found.slice(-MOST_SHOWN) };
  } catch (error) {
    return { events: [], missing: messageOf(error) };
  }
}
