/** Tests which Events the drawer of a node shows. */
import { expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { lookAt } from '../../../test/support/builders/views.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Event } from '../../kube/resources.ts';
import { keyOf } from './make-state.ts';
import { eventsAboutNode } from './node-events.ts';

const NOW = T0 + 5 * MINUTE;

function eventOf(name: string, at: number, more: Partial<Event> = {}): Event {
  return {
    metadata: { name: `${name}.1`, namespace: 'default' },
    involvedObject: { kind: 'Node', name },
    source: { component: 'refit-controller' },
    reason: 'Signalled',
    message: 'Upgrade started',
    count: 2,
    firstTimestamp: later(at),
    lastTimestamp: later(at),
    ...more,
  };
}

/** Resolves with what is shown of `w1`, or of the node with this name, and with the lists that were asked for. */
async function shown(items: readonly Event[] | Error, { node = 'w1', key = '' } = {}) {
  const k0supdate = buildUpdate({ targets: { workers: listed('w1', 'w,2') } });
  const plans = await lookAt(
    [buildPlan({ commands: [{ k0supdate }] })],
    [],
    [buildNode('w1')],
    NOW,
  );
  const [plan] = plans;
  if (plan === undefined) throw new Error('the plan is not shown');
  const lists: unknown[] = [];
  const listAll = async (_kind: unknown, options: object): Promise<object> => {
    lists.push(options);
    return await (items instanceof Error ? Promise.reject(items) : Promise.resolve({ items }));
  };
  const client = { listAll } as unknown as Pick<KubeClient, 'listAll'>;
  const status = { leader: { state: 'unknown' as const }, plans };
  const { signal } = new AbortController();
  const found = await eventsAboutNode({ status }, key || keyOf(plan), node, client, signal);
  return { ...found, lists };
}

test('the Events of Refit about the node since the run began are shown, the oldest first', async () => {
  const others = [
    eventOf('w1', MINUTE, { source: { component: 'kubelet' } }),
    eventOf('w1', -60 * MINUTE),
    eventOf('w1', MINUTE, { metadata: { name: 'x', namespace: 'shop' } }),
  ];
  const own = [eventOf('w1', 3 * MINUTE, { reason: 'Failed' }), eventOf('w1', MINUTE)];
  const { events, lists } = await shown([...others, ...own]);
  expect(events).toEqual([
    { at: later(MINUTE), reason: 'Signalled', message: 'Upgrade started', count: 2 },
    { at: later(3 * MINUTE), reason: 'Failed', message: 'Upgrade started', count: 2 },
  ]);
  expect(lists).toMatchObject([{ namespace: 'default', fieldSelector: 'involvedObject.name=w1' }]);
});

test('the drawer shows at most the newest 20 Events', async () => {
  const { events } = await shown(Array.from({ length: 30 }, (_, at) => eventOf('w1', at * 1000)));
  expect(events).toHaveLength(20);
  expect(events.at(-1)?.at).toBe(later(29_000));
});

test.each([
  ['a node that no plan has', { node: 'w9' }],
  ['a plan that does not exist', { key: 'autopilot//other' }],
  ['a name that would change the field selector', { node: 'w,2' }],
])('for %s nothing is asked', async (_what, asked) => {
  expect(await shown([eventOf('w1', MINUTE)], asked)).toEqual({ events: [], lists: [] });
});

test('a user who may not list Events gets the reason', async () => {
  const { events, missing } = await shown(new Error('events is forbidden'));
  expect({ events, missing }).toEqual({ events: [], missing: 'events is forbidden' });
});
