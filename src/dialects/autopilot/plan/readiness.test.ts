/** Tests what is said about the machines of k0s before an upgrade. */
import { expect, test } from 'vitest';
import { readyContext } from '../../../../test/support/ready/world.ts';
import { k0sReadiness } from './readiness.ts';

test('controllers of k0s that the user may not read are a question without an answer', async () => {
  const context = readyContext({ forbidden: ['ControlNode'] });
  expect(await k0sReadiness.machines(context, 'v1.37.0')).toEqual([
    { state: 'unknown', message: 'the controllers of k0s: you may not read controlnodes' },
  ]);
});
