/** Tests which Node belongs to a ControlNode, which leaders are leaders of k0s, and which statuses are final. */
import { expect, test } from 'vitest';
import { type ControlNode, isFinal, isK0sLeader, MODE_ANNOTATION, nodeNameOf } from './names.ts';

const address = { address: '10.0.0.1', type: 'InternalIP' };

test.each<[string, string | undefined, ControlNode['status'], string | undefined]>([
  [
    'of a pure controller',
    'controller',
    { addresses: [{ address: 'x', type: 'Hostname' }] },
    undefined,
  ],
  ['of an object without a mode', undefined, undefined, undefined],
  [
    'by its address',
    'controller+worker',
    { addresses: [address, { address: 'x', type: 'Hostname' }] },
    'x',
  ],
  ['by its name', 'controller+worker', { addresses: [address] }, 'c1'],
])('the node %s', (_name, mode, status, expected) => {
  const annotations = mode === undefined ? {} : { [MODE_ANNOTATION]: mode };
  expect(nodeNameOf({ metadata: { name: 'c1', annotations }, ...(status && { status }) })).toBe(
    expected,
  );
});

test.each([
  ['0123456789abcdef0123456789abcdef', true],
  ['0123456789abcdef0123456789abcde', false],
  ['0123456789abcdef0123456789abcdef0', false],
  ['controller1_0123456789abcdef0123456789abcdef', false],
  ['', false],
])('the leader %s is of k0s: %s', (holder, is) => {
  expect(isK0sLeader(holder)).toBe(is);
});

test.each([
  ['Completed', true],
  ['Failed', true],
  ['FailedDownload', true],
  ['RollingBack', false],
  ['Restart', false],
  [undefined, false],
])('%s ends a signal: %s', (status, is) => {
  expect(isFinal(status)).toBe(is);
});
