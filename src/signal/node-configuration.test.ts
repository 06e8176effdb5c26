/**
 * Tests which changes of a node are never allowed, whatever an agent allows, and what counts as a request and as a
 * report.
 */
import { expect, test } from 'vitest';
import {
  allows,
  CONFIGURATION_ANNOTATION,
  CONFIGURATION_REPORT_ANNOTATION,
  configurationReportOn,
  configurationRequestOn,
  isAllowance,
  isConfigurable,
} from './node-configuration.ts';

test.each([
  ['/etc/chrony/chrony.conf', true],
  ['/opt/a@b+c,d=e.conf', true],
  ['/etc/kubernetes/manifests/x.yaml', false],
  ['/etc/kubernetes', false],
  ['/etc/kubernetes-extras/x', true],
  ['/var/lib/kubelet/config.yaml', false],
  ['/var/lib/refit/journal.json', false],
  ['/etc/refit/agent.yaml', false],
  ['/etc/systemd/system/refit-agent.service', false],
  ['/etc/systemd/system/kubelet.service.d/20-x.conf', false],
  ['/usr/lib/systemd/system/k0sworker.service', false],
  ['/etc/systemd/system/chrony.service.d/x.conf', true],
  ['/proc/sys/kernel/core_pattern', false],
  ['/run/x', false],
  ['/etc/../run/x', false],
  ['/etc/./x', false],
  ['/etc//x', false],
  ['/etc/x/', false],
  ['etc/x', false],
  ['/', false],
  ['/etc/a b', false],
  ['user:alice', true],
  ['user:Alice', false],
  ['user:../x', false],
  [`/etc/${'x'.repeat(507)}`, true],
  [`/etc/${'x'.repeat(508)}`, false],
])('%s may be changed: %j', (name, is) => {
  expect(isConfigurable({ name, content: '', mode: 0o644 })).toBe(is);
  expect(isAllowance(name)).toBe(is);
});

test.each([
  ['v', '4', true],
  ['v', '4 --config=/x', false],
  ['v', '4"\nX=', false],
  ['v', '', false],
  ['v', '9', false],
  ['v=4', '', false],
  ['registry-qps', '10', true],
  ['config', '/x', false],
  ['kubeconfig', 'x', false],
  ['root-dir', 'x', false],
  ['cloud-provider', 'x', false],
  ['provider-id', 'x', false],
  ['hostname-override', 'x', false],
  ['node-ip', '192.0.2.1', false],
  ['max-pods', '10', false],
  ['pod-manifest-path', 'x', false],
])('--%s=%s of the kubelet may be changed: %j', (name, content, is) => {
  expect(isConfigurable({ name: `kubelet:${name}`, content, mode: 0 })).toBe(is);
});

test.each([
  [0o644, true],
  [0o755, true],
  [0o600, true],
  [0o664, false],
  [0o646, false],
  [0o4755, false],
])('a file with permissions %o: %j', (mode, is) => {
  expect(isConfigurable({ name: '/etc/x', content: '', mode })).toBe(is);
});

test.each([
  undefined,
  'x',
  [],
  { name: '/etc/x' },
  { name: '/etc/x', content: '', mode: '420' },
  { name: '/etc/x', content: 5, mode: 0o644 },
  { name: ['/etc/x'], content: '', mode: 0o644 },
  { name: 'kubelet:v', content: 4, mode: 0 },
  { content: '' },
  { name: 'kubelet', content: '', mode: 0o600 },
])('no item: %j', (value) => {
  expect(isConfigurable(value)).toBe(false);
});

test.each([
  ['/etc/chrony', '/etc/chrony/chrony.conf', true],
  ['/etc/chrony', '/etc/chrony', true],
  ['/etc/chrony', '/etc/chronyd/x', false],
  ['user:a', 'user:a', true],
  ['user:a', 'user:ab', false],
  ['kubelet', 'kubelet:v', true],
  ['kubelet', '/kubelet', false],
])('%s allows %s: %j', (allowed, name, is) => {
  expect(allows([allowed], name)).toBe(is);
  expect(allows(['/opt', allowed], name)).toBe(is);
});

test.each([
  ['kubelet', true],
  [['/etc/x'], false],
  [undefined, false],
])('an agent may be allowed %j: %j', (text, is) => {
  expect(isAllowance(text)).toBe(is);
});

const noted = (name: string, value: unknown) => ({
  metadata: { name: 'n', annotations: { [name]: JSON.stringify(value) } },
});
const item = { name: '/etc/x', content: 'eA==', mode: 0o644 };

test.each([
  ['a request', { uid: 'u', items: [item] }, { uid: 'u', items: [item] }],
  ['no uid', { items: [item] }, undefined],
  ['no list', { uid: 'u', items: item }, undefined],
  ['nothing', null, undefined],
])('%s is read', (_what, value, request) => {
  expect(configurationRequestOn(noted(CONFIGURATION_ANNOTATION, value))).toEqual(request);
});

test.each([
  [{ uid: 'u' }, {}],
  [{ uid: 'u', failure: 'why' }, { failure: 'why' }],
  [{ uid: 'u', failure: 5 }, { failure: undefined }],
  [{ uid: 'of another' }, undefined],
  ['text', undefined],
])('the report %j', (value, report) => {
  expect(
    configurationReportOn(noted(CONFIGURATION_REPORT_ANNOTATION, value), { uid: 'u' }),
  ).toEqual(report);
});
