/** Tests the annotations that tell other tools to leave a Node alone. Refit removes only its own annotations. */
import { expect, test } from 'vitest';
import { buildNode } from '../../test/support/builders/nodes.ts';
import { marksOn, withMarks, withoutMarks } from './node-marks.ts';

const SCALE = 'cluster-autoscaler.kubernetes.io/scale-down-disabled';
const SCALE_BY = 'upgrade.refit.dev/scale-down-disabled-by';
const DISRUPT = 'karpenter.sh/do-not-disrupt';
const DISRUPT_BY = 'upgrade.refit.dev/do-not-disrupt-by';
const TOOLS = ['ClusterAutoscaler', 'Karpenter', 'Kured'] as const;

type Annotations = Record<string, string>;

test.each<[string, Annotations, Annotations]>([
  [
    'both are set, with their owner',
    { other: 'x' },
    { other: 'x', [SCALE]: 'true', [SCALE_BY]: 'me', [DISRUPT]: 'true', [DISRUPT_BY]: 'me' },
  ],
  [
    'what somebody else set stays, whatever its value',
    { [DISRUPT]: 'false' },
    { [SCALE]: 'true', [SCALE_BY]: 'me', [DISRUPT]: 'false' },
  ],
  [
    'a mark of a former plan gets a new owner',
    { [SCALE]: 'true', [SCALE_BY]: 'them', [DISRUPT]: 'true' },
    { [SCALE]: 'true', [SCALE_BY]: 'me', [DISRUPT]: 'true' },
  ],
  [
    'an owner that was left without its mark is replaced',
    { [SCALE_BY]: 'them', [DISRUPT]: 'true' },
    { [SCALE]: 'true', [SCALE_BY]: 'me', [DISRUPT]: 'true' },
  ],
])('setting: %s', (_title, before, after) => {
  const node = buildNode('w1', { annotations: before });
  expect(withMarks(node, 'me', TOOLS).metadata.annotations).toEqual(after);
});

test.each<[string, Annotations, Annotations]>([
  [
    'ours go',
    { other: 'x', [SCALE]: 'true', [SCALE_BY]: 'me', [DISRUPT]: 'true', [DISRUPT_BY]: 'me' },
    { other: 'x' },
  ],
  ['those of people stay', { [SCALE]: 'true' }, { [SCALE]: 'true' }],
  [
    'those of another plan stay',
    { [SCALE]: 'true', [SCALE_BY]: 'them' },
    { [SCALE]: 'true', [SCALE_BY]: 'them' },
  ],
  [
    'a value that was changed since stays',
    { [SCALE]: 'never', [SCALE_BY]: 'me' },
    { [SCALE]: 'never' },
  ],
  ['an owner without its mark goes', { [DISRUPT_BY]: 'me' }, {}],
])('taking away: %s', (_title, before, after) => {
  const node = buildNode('w1', { annotations: before });
  expect(withoutMarks(node, 'me').metadata.annotations).toEqual(after);
});

test('a Node without marks says so', () => {
  expect(marksOn(buildNode('w1'))).toEqual([
    { tool: 'ClusterAutoscaler', isSet: false, owner: undefined },
    { tool: 'Karpenter', isSet: false, owner: undefined },
  ]);
});
