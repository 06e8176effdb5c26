/** Proves that repeated turns of any leader signal no further node and record nothing twice. */
import { describe, expect, test } from 'vitest';
import {
  PASS_TIME,
  passOver,
  wordsOf,
} from '../../../../test/support/builders/autopilot-passes.ts';
import { buildControlNode, buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../../test/support/builders/plans.ts';
import { buildSignal } from '../../../../test/support/builders/signals.ts';
import { buildWorld } from '../../../../test/support/builders/worlds.ts';
import { later } from '../../../../test/support/clock/times.ts';
import type { Plan } from '../../../api/autopilot/plan.ts';
import { rfc3339 } from '../../../util/clock.ts';

const NAMES = ['n1', 'n2', 'n3'];
const WORKERS = buildWorld(
  [],
  NAMES.map((name) => buildNode(name)),
);

/**
 * The recorded state of each node: pending, sent or completed. A node in the state sent also reports that it is in
 * progress.
 */
interface Recorded {
  readonly role: 'controllers' | 'workers';
  readonly concurrent: number;
  readonly words: readonly string[];
}

function planIn(state: string, { role, concurrent, words }: Recorded): Plan {
  const targets = { [role]: { ...listed(...NAMES), limits: { concurrent } } };
  const entries = words.map((word, index) => ({
    name: NAMES[index] ?? '',
    state: `Signal${word}`,
    lastUpdatedTimestamp: later(1000),
  }));
  const commands = [{ id: 0, state, k0supdate: { [role]: entries } }];
  return buildPlan({ commands: [{ k0supdate: buildUpdate({ targets }) }] }, { state, commands });
}

function worldOf({ words }: Recorded) {
  const annotationsOf = (index: number) =>
    words[index] === 'Sent' ? { annotations: buildSignal({ status: 'Restart' }) } : {};
  return buildWorld(
    NAMES.map((name, index) => buildControlNode(name, annotationsOf(index))),
    NAMES.map((name, index) => buildNode(name, annotationsOf(index))),
  );
}

describe.each(['Schedulable', 'SchedulableWait'])('a plan that says %s', (state) => {
  test.each<[string, Recorded, string[]]>([
    [
      'controllers, none begun',
      { role: 'controllers', concurrent: 3, words: ['Pending', 'Pending', 'Pending'] },
      ['n1'],
    ],
    [
      'repeated passes signal no controller while another controller is in progress',
      { role: 'controllers', concurrent: 3, words: ['Completed', 'Sent', 'Pending'] },
      [],
    ],
    [
      'controllers, the last at work',
      { role: 'controllers', concurrent: 1, words: ['Completed', 'Completed', 'Sent'] },
      [],
    ],
    [
      'workers, none begun',
      { role: 'workers', concurrent: 2, words: ['Pending', 'Pending', 'Pending'] },
      ['n1', 'n2'],
    ],
    [
      'workers, one of two slots free',
      { role: 'workers', concurrent: 2, words: ['Sent', 'Pending', 'Pending'] },
      ['n2'],
    ],
    [
      'repeated passes signal no worker while all slots are in use',
      { role: 'workers', concurrent: 2, words: ['Sent', 'Sent', 'Pending'] },
      [],
    ],
    [
      'repeated passes do not complete a plan while all its workers are in progress',
      { role: 'workers', concurrent: 3, words: ['Sent', 'Sent', 'Sent'] },
      [],
    ],
  ])('every pass sends the same signals: %s', (_name, recorded, signalled) => {
    const world = worldOf(recorded);
    const first = passOver({ plan: planIn(state, recorded), world });
    expect(first.signalled).toEqual(signalled);
    expect(wordsOf(first.plan)).toMatchObject({ state: 'SchedulableWait' });
    // In the first check, a second leader runs at the same time. In the second check, another leader starts before it
    // sees the signals.
    expect(passOver({ plan: planIn(state, recorded), world })).toEqual(first);
    expect(passOver({ plan: first.plan, world })).toEqual(first);
  });
});

test('a repeated first pass records each command and each target only once', () => {
  const update = { k0supdate: buildUpdate({ targets: { workers: listed(...NAMES) } }) };
  const fresh = buildPlan({ commands: [update, update] });
  const { plan } = passOver({ plan: fresh, world: WORKERS });
  const lists = plan.status?.commands.map(({ k0supdate }) =>
    k0supdate?.workers?.map(({ name }) => name),
  );
  expect(lists).toEqual([NAMES, NAMES]);
  expect(passOver({ plan: fresh, world: WORKERS }).plan).toEqual(plan);
  expect(passOver({ plan, world: WORKERS }).plan).toEqual(plan);
});

test('the status gives a completed target the time when its end was recorded', () => {
  const sent = planIn('SchedulableWait', { role: 'workers', concurrent: 1, words: ['Sent'] });
  const world = buildWorld(
    [],
    [buildNode('n1', { annotations: buildSignal({ status: 'Completed' }) })],
  );
  const { plan } = passOver({ plan: sent, world });
  expect(plan.status?.commands[0]?.k0supdate?.workers).toEqual([
    { name: 'n1', state: 'SignalCompleted', lastUpdatedTimestamp: rfc3339(PASS_TIME) },
  ]);
});
