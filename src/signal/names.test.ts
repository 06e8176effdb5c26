/** The table of which Node is that of a controller. */
import { expect, test } from 'vitest';
import { type ControlNode, MODE_ANNOTATION, nodeNameOf } from './names.ts';

const address = { address: '10.0.0.1', type: 'InternalIP' };

test.each<[string, string | undefined, ControlNode['status'], string | undefined]>([
  ['of a pure controller', 'controller', { addresses: [{ address: 'x', type: 'Hostname' }] }, undefined],
  ['of an object without a mode', undefined, undefined, undefined],
  ['by its address', 'controller+worker', { addresses: [address, { address: 'x', type: 'Hostname' }] }, 'x'],
  ['by its name', 'controller+worker', { addresses: [address] }, 'c1'],
])('the node %s', (_name, mode, status, expected) => {
  const annotations = mode === undefined ? {} : { [MODE_ANNOTATION]: mode };
  expect(nodeNameOf({ metadata: { name: 'c1', annotations }, ...(status && { status }) })).toBe(expected);
});
