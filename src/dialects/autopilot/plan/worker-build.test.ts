/** Tests that the version of a worker has its build as soon as an agent has proved the build, because no kubelet of k0s reports it. */
import { expect, test } from 'vitest';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildSignal } from '../../../../test/support/builders/signals.ts';
import { autopilot } from './autopilot-dialect.ts';

test.each([
  ['Completed', 'v1.36.3+k0s', 'v1.36.3+k0s.2'],
  ['Restart', 'v1.36.3+k0s', 'v1.36.3+k0s'],
  ['Completed', 'v1.36.2+k0s', 'v1.36.2+k0s'],
])(
  'the signal of v1.36.3+k0s.2 is %s and the kubelet reports %s, so the worker runs %s',
  (status, kubeletVersion, expected) => {
    const worker = buildNode('w1', { annotations: buildSignal({ status }) });
    const node = { ...worker, status: { ...worker.status, nodeInfo: { kubeletVersion } } };
    expect(autopilot.versions?.skewRules?.versionOf(node)).toBe(expected);
  },
);
