/** Tests which nodes count as unavailable, in a domain and in the cluster, and the sentences about their limits. */
import { describe, expect, test } from 'vitest';
import { input, inZones } from '../../../test/support/builders/gate-inputs.ts';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot, type KnownFacts } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, T0 } from '../../../test/support/clock/times.ts';
import { withClaim } from '../../signal/at-work.ts';
import type { NodeView } from '../model/facts.ts';
import type { RecordedState } from '../model/rollout.ts';
import { domainAvailable } from './domain-available.ts';
import { nodesAvailable } from './nodes-available.ts';
import { censusOf, censusOfIntent, type Verdict } from './types.ts';

const PASSED: Verdict = { kind: 'pass' };
const NODE: NodeView = {
  name: 'n1',
  unschedulable: false,
  cordonOwner: undefined,
  taintOwner: undefined,
};

function waitOf(code: string, message: string, ends: string, more: object = {}): object {
  return { kind: 'wait', reason: { code, message }, ends, ...more };
}

describe('the nodes of a domain', () => {
  const zones = { w1: 'a', w2: 'a', w3: 'b', w4: 'a' };

  test('are counted with the same value of the label only', () => {
    expect(domainAvailable.evaluate(inZones(zones, ['w3']))).toEqual(PASSED);
    expect(domainAvailable.evaluate(inZones(zones, ['w2']))).toEqual(
      waitOf(
        'DomainFull',
        '1 of 3 nodes with zone=a is not Ready, unschedulable or at work (w2); UpgradePolicy zones allows 1',
        'one of those nodes is available again, or perDomain.maxUnavailable of the UpgradePolicy is raised',
      ),
    );
    expect(domainAvailable.evaluate(inZones(zones, ['w2', 'w4']))).toMatchObject({
      reason: {
        message:
          '2 of 3 nodes with zone=a are not Ready, unschedulable or at work (w2, w4); UpgradePolicy zones allows 1',
      },
    });
  });

  test('include the node itself only for the others', () => {
    const given = inZones(zones, []);
    const busy = new Set(['w1']);
    const census = given.census && { ...given.census, busy };
    expect(domainAvailable.evaluate({ ...given, census })).toEqual(PASSED);
    const both = given.census && { ...given.census, busy: new Set(['w1', 'w2']) };
    expect(domainAvailable.evaluate({ ...given, census: both })).toMatchObject({
      reason: {
        message:
          '1 of 3 nodes with zone=a is not Ready, unschedulable or at work (w2); UpgradePolicy zones allows 1',
      },
    });
  });

  test('do not limit a target that has no label, no Node or a node that is already away', () => {
    const full = inZones(zones, ['w2']);
    expect(domainAvailable.evaluate({ ...full, facts: { ...full.facts, labels: {} } })).toEqual(
      PASSED,
    );
    expect(domainAvailable.evaluate({ ...full, target: buildTarget('x') })).toEqual(PASSED);
    expect(domainAvailable.evaluate(inZones(zones, ['w1', 'w2']))).toEqual(PASSED);
    expect(domainAvailable.evaluate({ ...full, census: undefined })).toEqual(PASSED);
  });

  test('are not counted if they are virtual', () => {
    const full = inZones(zones, ['w2']);
    const census = full.census && {
      ...full.census,
      all: new Set(['w1', 'w3']),
      busy: new Set<string>(),
    };
    expect(domainAvailable.evaluate({ ...full, census })).toEqual(PASSED);
  });
});

describe('the census of nodes', () => {
  const cordoned = (name: string) => ({ ...buildNode(name), spec: { unschedulable: true } });

  test('names as cordoned only Ready nodes on which nobody works', () => {
    const fleet = [
      buildNode('free'),
      buildNode('away', {}, 'False'),
      cordoned('cordoned'),
      { ...buildNode('both', {}, 'False'), spec: { unschedulable: true } },
      cordoned('moving'),
      withClaim(buildNode('claimed'), 'table//other/uid'),
    ];
    const census = censusOf(fleet, ['moving'], 'table//m/uid');
    expect([...census.cordoned]).toEqual(['cordoned']);
    expect([...census.unavailable]).toEqual(['away', 'cordoned', 'both', 'moving']);
    expect([...census.busy]).toEqual(['away', 'cordoned', 'both', 'moving', 'claimed']);
  });

  test('lets a wait name the nodes that people can uncordon, at most five', () => {
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    const census = censusOf(
      [buildNode('n1'), buildNode('g', {}, 'False'), ...names.map(cordoned)],
      [],
    );
    const policy = buildPolicy({ name: 'one', maxUnavailable: { nodes: 1 } });
    expect(nodesAvailable.evaluate({ ...input('worker'), policy, census })).toMatchObject({
      ends: 'one of those nodes is available again (only cordoned: kubectl uncordon a b c d e), or maxUnavailable of the UpgradePolicy is raised',
      uncordon: ['a', 'b', 'c', 'd', 'e'],
    });
    const away = censusOf([buildNode('n1'), buildNode('g', {}, 'False')], []);
    const found = nodesAvailable.evaluate({ ...input('worker'), policy, census: away });
    expect(found).not.toHaveProperty('uncordon');
    expect(found).toMatchObject({
      ends: 'one of those nodes is available again, or maxUnavailable of the UpgradePolicy is raised',
    });
  });

  test.each<[string, boolean, RecordedState, KnownFacts]>([
    ['is intended, but not signalled', false, 'intended', {}],
    [
      'is signalled',
      true,
      'intended',
      { observation: { kind: 'sent', attempt: later(0), since: later(0) } },
    ],
    ['has begun its work', true, 'intended', { observation: { kind: 'none', begun: true } }],
    [
      'has the claim of another plan',
      true,
      'intended',
      { node: { ...NODE, name: 'w2', claim: 'table//z/uid' } },
    ],
    [
      'has the claim of this plan',
      false,
      'intended',
      { node: { ...NODE, name: 'w2', claim: 'table//m/uid' } },
    ],
    ['has no claim', false, 'intended', { node: { ...NODE, name: 'w2' } }],
    ['is done, while another plan works on its node', true, 'done', {}],
  ])(
    'of an intent counts the node of a later target that %s: %s',
    (_title, isBusy, state, facts) => {
      const stage = buildStage('worker', [buildTarget('w1', 'intended'), buildTarget('w2', state)]);
      const second =
        state === 'done' ? withClaim(buildNode('w2'), 'table//z/uid') : buildNode('w2');
      const snapshot = withParts(buildSnapshot(buildRollout([stage]), { w2: facts }), {
        plan: { claim: 'table//m/uid' },
        cluster: { fleet: [buildNode('w1'), second] },
      });
      const policy = buildPolicy({ name: 'one', maxUnavailable: { nodes: 1 } });
      const [target = buildTarget('w1')] = stage.targets;
      const census = censusOfIntent({ snapshot, stage, target, policy, now: T0 });
      expect(census?.busy.has('w2')).toBe(isBusy);
      expect(census?.busy.has('w1')).toBe(true);
    },
  );
});
