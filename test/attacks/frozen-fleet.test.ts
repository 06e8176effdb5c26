/**
 * Tests that the kubelet of one Node cannot block all other Nodes with signals on its own Node. The API server in
 * memory enforces no rights, so the attacker writes only what NodeRestriction allows: annotations.
 * test/testenv/roles.test.ts shows that labels are refused.
 */

import { describe, expect, test } from 'vitest';
import { type Plan, plans } from '../../src/api/autopilot/plan.ts';
import { autopilot } from '../../src/dialects/autopilot/plan/autopilot-dialect.ts';
import { createReconciler } from '../../src/engine/loop.ts';
import { failedInFlightIn } from '../../src/engine/schedule/slots.ts';
import { viewsOf } from '../../src/engine/snapshot/world.ts';
import { type Node, nodes } from '../../src/kube/resources.ts';
import { decodeSignal } from '../../src/signal/annotations.ts';
import { ATTEMPT_LABEL, ROLLOUT_ANNOTATION } from '../../src/signal/names.ts';
import { rfc3339 } from '../../src/util/clock.ts';
import { knowledgeOf } from '../support/builders/knowledge.ts';
import { MemoryApi } from '../support/builders/memory-api.ts';
import { buildNode } from '../support/builders/nodes.ts';
import { working } from '../support/builders/observations.ts';
import { buildPlan, buildUpdate, listed } from '../support/builders/plans.ts';
import { buildPolicy } from '../support/builders/rollout-policies.ts';
import { buildRollout } from '../support/builders/rollouts.ts';
import { buildSignal } from '../support/builders/signals.ts';
import { buildSnapshot } from '../support/builders/snapshots.ts';
import { buildStage } from '../support/builders/stages.ts';
import { buildTarget } from '../support/builders/targets.ts';
import { FakeClock } from '../support/clock/fake-clock.ts';
import { HOUR, MINUTE, T0 } from '../support/clock/times.ts';

/** The preconditions use discovery, which the API server in memory does not support. */
const { preconditions: _unasked, ...dialect } = autopilot;
const FUTURE = '2999-01-01T00:00:00Z';
const PLAN_UID = 'plan-uid';

/** A plan for w2, with one worker at a time. The attacker controls w1. */
class Fleet {
  readonly api = new MemoryApi();
  readonly clock = new FakeClock(T0 + MINUTE);
  readonly #views = autopilot.watched.map(
    ({ resource }) => [resource, this.api.view(resource)] as const,
  );
  readonly #plans = this.api.view(plans);
  #reconcile = this.#newLeader();

  constructor(attacker: Node) {
    const workers = { ...listed('w2'), limits: { concurrent: 1 } };
    this.api.put(
      plans,
      buildPlan({ commands: [{ k0supdate: buildUpdate({ targets: { workers } }) }] }),
    );
    for (const node of [attacker, buildNode('w2')]) this.api.put(nodes, node);
  }

  async lead(): Promise<void> {
    for (let calls = -1; calls < this.api.calls.length; ) {
      calls = this.api.calls.length;
      for (const view of [this.#plans, ...this.#views.map(([, each]) => each)]) view.catchUp();
      await this.#reconcile('autopilot');
    }
  }

  /** Another process gets the lease. */
  failOver(): void {
    this.#reconcile = this.#newLeader();
  }

  /** Writes annotations on w1, as the kubelet of w1 may do. */
  annotate(annotations: Record<string, string>): void {
    this.api.change(nodes, 'w1', (node) => ({
      ...node,
      metadata: { ...node.metadata, annotations },
    }));
  }

  get plan(): Plan {
    return this.api.read(plans, 'autopilot');
  }

  get isGoingOn(): boolean {
    return decodeSignal(this.api.read(nodes, 'w2').metadata.annotations) !== undefined;
  }

  #newLeader() {
    return createReconciler({
      dialect,
      client: this.api.client,
      plans: this.#plans,
      ...knowledgeOf(viewsOf(this.#views)),
      policyFor: () => buildPolicy(),
      clock: this.clock,
      prober: { askControlPlane: async () => await Promise.resolve([]) },
    });
  }
}

const lies: [string, Record<string, string>][] = [
  ['for a plan that is not there', buildSignal({ planId: 'gone', status: 'Restart' })],
  [
    'that never ends',
    buildSignal({
      planId: 'gone',
      status: 'ApplyingUpdate',
      created: rfc3339(T0),
      timestamp: rfc3339(T0),
    }),
  ],
  [
    'from the future',
    buildSignal({ planId: 'gone', status: 'Restart', created: FUTURE, timestamp: FUTURE }),
  ],
  [
    'without a readable time',
    buildSignal({ planId: 'gone', status: 'Restart', timestamp: 'never' }),
  ],
  ['with an odd state', buildSignal({ planId: 'gone', status: 'Dreaming', timestamp: FUTURE })],
  [
    'with the mark of a plan that a leader could have sent',
    {
      ...buildSignal({ planId: 'gone', created: FUTURE }),
      [ROLLOUT_ANNOTATION]: `old-uid/${FUTURE}`,
    },
  ],
  [
    'with the mark of the plan that runs',
    {
      ...buildSignal({ status: 'Restart', created: FUTURE }),
      [ROLLOUT_ANNOTATION]: `${PLAN_UID}/${FUTURE}`,
    },
  ],
];

test.each(lies)('a signal %s, that no leader sent, holds nobody up', async (_name, annotations) => {
  const fleet = new Fleet(buildNode('w1', { annotations }));
  await fleet.lead();
  expect(fleet.isGoingOn).toBe(true);
});

describe('a node that a leader did signal, for a plan that is gone', () => {
  const sent = rfc3339(T0);
  const stated = (status: string, timestamp = sent): Record<string, string> => ({
    ...buildSignal({ planId: 'gone', created: sent, status, timestamp }),
    [ROLLOUT_ANNOTATION]: `old-uid/${sent}`,
  });
  const label = `old-uid.${sent.replaceAll(':', '')}`;
  const open = (annotations: Record<string, string>): Fleet =>
    new Fleet(buildNode('w1', { annotations, labels: { [ATTEMPT_LABEL]: label } }));

  test('counts: two plans never work at once', async () => {
    const fleet = open(stated('Restart'));
    await fleet.lead();
    expect(fleet.isGoingOn).toBe(false);
  });

  test('holds the others up for two hours at most, whatever it says of the time', async () => {
    const fleet = open(stated('Restart', FUTURE));
    await fleet.lead();
    for (let passed = 0; passed < 2 * HOUR; passed += HOUR / 2) {
      expect(fleet.isGoingOn).toBe(false);
      await fleet.clock.advance(HOUR / 2);
      fleet.annotate(
        stated(passed % HOUR === 0 ? 'ApplyingUpdate' : 'Restart', rfc3339(fleet.clock.now())),
      );
      await fleet.lead();
    }
    expect(fleet.isGoingOn).toBe(true);
  });

  test('holds nobody up by an old signal that it shows again to a new leader', async () => {
    const fleet = open(stated('Restart'));
    await fleet.clock.advance(24 * HOUR);
    fleet.failOver();
    await fleet.lead();
    expect(fleet.isGoingOn).toBe(true);
  });

  test('does not count for an attempt that it made up', async () => {
    const fleet = open({
      ...stated('Restart'),
      ...buildSignal({ planId: 'gone', created: FUTURE, status: 'Restart' }),
    });
    await fleet.lead();
    expect(fleet.isGoingOn).toBe(true);
  });
});

describe('odd times and attempts in reports', () => {
  test.each(['Completed', 'Failed', 'FailedDownload'])(
    '%s on one node changes nothing for another',
    async (status) => {
      const fleet = new Fleet(buildNode('w1'));
      await fleet.lead();
      const { created = '' } = decodeSignal(fleet.api.read(nodes, 'w2').metadata.annotations) ?? {};
      const before = fleet.plan.status;
      for (const attempt of [created, FUTURE]) {
        const report = buildSignal({ created: attempt, status, timestamp: FUTURE });
        fleet.annotate({ ...report, [ROLLOUT_ANNOTATION]: `${PLAN_UID}/${attempt}` });
        await fleet.lead();
        expect(fleet.plan.status).toEqual(before);
      }
    },
  );

  test.each(['Completed', 'Failed'])(
    '%s for another attempt neither ends nor fails the node itself',
    async (status) => {
      const fleet = new Fleet(buildNode('w1'));
      await fleet.lead();
      const before = fleet.plan.status?.commands;
      const report = {
        ...buildSignal({ created: FUTURE, status }),
        [ROLLOUT_ANNOTATION]: `old-uid/${FUTURE}`,
      };
      fleet.api.change(nodes, 'w2', (node) => ({
        ...node,
        metadata: { ...node.metadata, annotations: report },
      }));
      await fleet.lead();
      const states = (commands: typeof before) =>
        commands?.[0]?.k0supdate?.workers?.map(({ state }) => state);
      expect(states(fleet.plan.status?.commands)).toEqual(states(before));
    },
  );

  test.each([FUTURE, 'never'])(
    'a failed node at work since %s holds its slot for four hours at most',
    (since) => {
      const stage = buildStage('worker', [
        buildTarget('w1', 'failed', { since: rfc3339(T0) }),
        'w2',
      ]);
      const facts = { w1: { observation: working('Restart', rfc3339(T0), since) } };
      const snapshot = buildSnapshot(buildRollout([stage]), facts);
      expect(failedInFlightIn(snapshot, T0 + HOUR)).toHaveLength(1);
      expect(failedInFlightIn(snapshot, T0 + 4 * HOUR)).toEqual([]);
    },
  );
});
