/**
 * Tests that a ControlNode has the content that the agent of k0s would write, that fields of others stay, and that
 * nothing is written twice.
 */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { type ControlNode, MODE_ANNOTATION } from '../../signal/names.ts';
import { type ControllerFacts, isAddress, missingFields, withTrueStatus } from './control-node.ts';

const recorded = JSON.parse(
  readFileSync(new URL('../../../test/fixtures/autopilot/objects.json', import.meta.url), 'utf8'),
) as { controlnode: ControlNode };

const silent: ControllerFacts = {
  name: 'c1',
  nodeName: 'c1',
  mode: 'controller',
  os: 'linux',
  arch: 'amd64',
};
const version = 'v1.36.3+k0s.0';
const facts: ControllerFacts = { ...silent, address: '10.99.0.11', version };

test('what real k0s wrote lacks nothing', () => {
  expect(missingFields(recorded.controlnode, facts)).toBeUndefined();
  expect(withTrueStatus(recorded.controlnode, facts)).toBeUndefined();
});

test('an object made from nothing says what real k0s wrote', () => {
  const fields = missingFields(undefined, facts);
  const { labels, annotations } = recorded.controlnode.metadata;
  expect(fields).toEqual({
    apiVersion: 'autopilot.k0sproject.io/v1beta2',
    kind: 'ControlNode',
    metadata: {
      name: 'c1',
      labels,
      annotations: { [MODE_ANNOTATION]: annotations?.[MODE_ANNOTATION] },
    },
  });
  expect(fields && withTrueStatus(fields, facts)?.status).toEqual(recorded.controlnode.status);
});

test.each<[string, Partial<ControllerFacts>]>([
  ['another mode', { mode: 'controller+worker' }],
  ['another name of the kubelet', { nodeName: 'edge-1' }],
  ['another machine', { arch: 'arm64' }],
])('a ControlNode is changed for %s', (_name, change) => {
  const now = { ...facts, ...change };
  expect(missingFields(recorded.controlnode, now)?.metadata).toEqual({
    name: 'c1',
    labels: {
      'kubernetes.io/hostname': now.nodeName,
      'kubernetes.io/os': 'linux',
      'kubernetes.io/arch': now.arch,
    },
    annotations: { [MODE_ANNOTATION]: now.mode },
  });
});

const extra = { address: '1.2.3.4', type: 'ExternalIP' };

const [internal, hostname] = recorded.controlnode.status?.addresses ?? [];

test.each<[string, ControlNode['status'], ControllerFacts, ControlNode['status']]>([
  ['nothing known', undefined, silent, { addresses: [{ address: 'c1', type: 'Hostname' }] }],
  [
    'an address that is known already',
    { addresses: [{ address: '10.0.0.9', type: 'InternalIP' }] },
    { ...silent, version },
    {
      addresses: [{ address: '10.0.0.9', type: 'InternalIP' }, hostname ?? extra],
      k0sVersion: version,
    },
  ],
  [
    'a service that does not answer',
    { k0sVersion: 'v1.36.2+k0s.0' },
    { ...silent, address: '10.99.0.11' },
    { addresses: [internal ?? extra, hostname ?? extra], k0sVersion: 'v1.36.2+k0s.0' },
  ],
  [
    "somebody else's address",
    { addresses: [extra] },
    facts,
    { addresses: [internal ?? extra, hostname ?? extra, extra], k0sVersion: version },
  ],
])('the status of a ControlNode is put right with %s', (_name, status, now, expected) => {
  const object: ControlNode = { metadata: { name: 'c1' }, ...(status && { status }) };
  const written = withTrueStatus(object, now);
  expect(written).toEqual({ ...object, status: expected });
  expect(written && withTrueStatus(written, now)).toBeUndefined();
});

test.each([
  ['10.0.0.1', true],
  ['fd00::1', true],
  ['controller.example.com', false],
  ['', false],
])('whether %j is an IP address: %j', (text, expected) => {
  expect(isAddress(text)).toBe(expected);
});
