/** Tests that a Node keeps what the request for marks does not concern. */
import { expect, test } from 'vitest';
import { buildNode } from '../../test/support/builders/nodes.ts';
import { withMarks, withoutMarks } from './node-marks.ts';

test('a Node gets only the marks for the tools that the policy names', () => {
  const node = buildNode('w1');
  expect(withMarks(node, 'me', ['Karpenter']).metadata.annotations).toEqual({
    'karpenter.sh/do-not-disrupt': 'true',
    'upgrade.refit.dev/do-not-disrupt-by': 'me',
  });
  expect(withMarks(node, 'me', ['Kured'])).toBe(node);
});

test('a Node without a mark of this owner stays the same object, so that nothing is written', () => {
  const node = buildNode('w1', { annotations: { 'karpenter.sh/do-not-disrupt': 'true' } });
  expect(withoutMarks(node, 'me')).toBe(node);
});
