/**
 * Tests every file of examples/: it says how to use it, `refit validate` accepts it, `refit preview` shows its Plans
 * with each policy, and the index lists it.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import {
  createControlNode,
  createNode,
  installDefinitions,
} from '../../sandbox/cluster/objects.ts';
import { type Plane, startSandboxPlane } from '../../sandbox/cluster/plane.ts';
import { upgradePolicies } from '../../src/api/kinds.ts';
import type { UpgradePolicy } from '../../src/api/refit/upgrade-policy.ts';
import { showPreview } from '../../src/cli/preview/preview-command.ts';
import { MODULES } from '../../src/dialects/modules.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { systemClock } from '../../src/util/clock.ts';
import type { RefitError } from '../../src/util/errors.ts';
import { validate } from '../support/builders/validation.ts';
import { filesOf, ROOT } from './tree.ts';

const FILES = filesOf('examples/**/*.yaml');
const VALUES = FILES.filter(({ path }) => path.startsWith('examples/chart/'));
const OBJECTS = FILES.filter((file) => !VALUES.includes(file));
const POLICIES = FILES.filter(({ path }) => path.startsWith('examples/policies/'));
const PLANS = FILES.filter(({ text }) => /^kind: Plan$/m.test(text));
const INDEX = filesOf('examples/README.md')[0]?.text ?? '';
const GUIDES = [
  'cluster-api',
  'install',
  'k0s',
  'kubeadm',
  'policy',
  'system-upgrade-controller',
  'updates',
];
const SERVER_LABELS = { 'node-role.kubernetes.io/control-plane': 'true' };
const AGENT_LABELS = {
  pool: 'blue',
  'example.com/appliance': '1',
  'example.com/upgrade': 'enabled',
};

let directory = '';
let plane: Plane;
let kubeconfig = '';

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-examples-'));
  plane = await startSandboxPlane(directory);
  kubeconfig = await plane.kubeconfig('admin');
  using client = createClient(await loadClusterConfig({ path: kubeconfig }), { userAgent: 'test' });
  await installDefinitions(client, systemClock);
  await createNode(client, 's1', SERVER_LABELS);
  for (const name of ['w1', 'w2', 'w3']) await createNode(client, name, AGENT_LABELS);
  for (const name of ['c1', 'c2', 'c3']) await createControlNode(client, name, '127.0.0.1');
});

afterAll(async () => {
  await plane.stop();
  await rm(directory, { recursive: true });
});

/** The comment lines before the first object. */
function headerOf(text: string): string {
  const lines = text.split('\n');
  return lines
    .slice(
      0,
      lines.findIndex((line) => !line.startsWith('#')),
    )
    .join('\n');
}

async function previewOf(path: string): Promise<{ shown: string; refusal: string }> {
  const lines: string[] = [];
  const write = (line: string): void => void lines.push(line);
  const size = () => ({ columns: 500, rows: 50 });
  let refusal = '';
  await showPreview(
    { file: [`${ROOT}${path}`], output: 'text', kubeconfig },
    {
      modules: MODULES,
      clock: systemClock,
      output: { write, size, isTerminal: false, hasColours: false },
      abort: new AbortController().signal,
    },
  ).catch((error: unknown) => {
    refusal = (error as RefitError).line;
  });
  return { shown: lines.join(''), refusal };
}

test('there is an example for each dialect', () => {
  const folders = new Set(FILES.map(({ path }) => path.split('/')[1]));
  const dialects = ['cluster-api', 'k0s', 'kubeadm', 'system-upgrade-controller'];
  expect(folders).toEqual(new Set([...dialects, 'chart', 'policies']));
});

test.each(FILES)('$path says what it does, what to change and how to apply it', ({ text }) => {
  const header = headerOf(text);
  expect(header).toMatch(/^# [A-Z].*[:.]/i);
  expect(header).toMatch(/^# Change: +\S/m);
  expect(header).toMatch(/^# Apply: +\S/m);
});

test.each(OBJECTS)('refit validate accepts $path without a warning', async ({ path }) => {
  let shown = '';
  await validate([`${ROOT}${path}`], (text) => {
    shown += text;
  });
  expect(shown).not.toBe('');
  // A policy for plans of every dialect may have fields that have no effect on Machines.
  expect(shown.replaceAll(/^.*warning: .* on plans of capi: .*$/gm, '')).not.toContain('warning');
});

test.each(PLANS)('refit preview shows each Plan in $path', async ({ path, text }) => {
  const { shown, refusal } = await previewOf(path);
  const names = [...text.matchAll(/^kind: Plan\nmetadata:\n {2}name: (\S+)$/gm)];
  expect(names.length).toBeGreaterThan(0);
  for (const [, name = ''] of names)
    expect(shown).toMatch(new RegExp(`^Plan (?:system-upgrade/)?${name} `, 'm'));
  // Only the controller resolves a channel. A Plan with a channel therefore has no version and no order yet.
  if (text.includes('  channel:'))
    expect(refusal).toContain('waiting for the version of the channel');
  else {
    expect(refusal).toBe('');
    expect(shown).toMatch(/batch 1 +\S/);
  }
});

test.each(POLICIES)(
  '$path: refit preview shows what a Plan does under this policy',
  async ({ text }) => {
    const policy = parse(text) as UpgradePolicy;
    const { name } = policy.metadata;
    using client = createClient(await loadClusterConfig({ path: kubeconfig }), {
      userAgent: 'test',
    });
    await client.create(upgradePolicies, policy);
    try {
      const { shown, refusal } = await previewOf('examples/k0s/plan.yaml');
      expect(refusal).toBe('');
      expect(shown).toContain(`policy   UpgradePolicy ${name} `);
      expect(shown).toMatch(/batch 1 +\S/);
    } finally {
      await client.delete(upgradePolicies, name);
    }
  },
);

/**
 * Returns the paths of the values that the chart does not have, such as `k0s.replica`. Values whose names the user
 * chooses, such as variables, count as one value.
 */
function unknownValues(values: object, defaults: object, parent = ''): string[] {
  return Object.entries(values).flatMap(([key, value]: [string, unknown]) => {
    const path = `${parent}${key}`;
    if (!Object.hasOwn(defaults, key)) return [path];
    const known = (defaults as Record<string, unknown>)[key];
    if (!isMap(value) || !isMap(known) || Object.keys(known).length === 0) return [];
    return unknownValues(value, known, `${path}.`);
  });
}

const isMap = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

test.each(VALUES)(
  '$path has only values of the chart, and says how to install it',
  ({ path, text }) => {
    const defaults = parse(filesOf('deploy/chart/values.yaml')[0]?.text ?? '') as object;
    expect(unknownValues(parse(text) as object, defaults)).toEqual([]);
    expect(unknownValues({ k0s: { replica: 2 }, k0S: {} }, defaults)).toEqual([
      'k0s.replica',
      'k0S',
    ]);
    expect(headerOf(text)).toContain(`--values ${path}`);
  },
);

test('the index lists every example, and each guide has a link to the index', () => {
  const linked = [...INDEX.matchAll(/\]\(((?!\.\.)[^)]+)\)/g)].map(([, to = '']) => to);
  const all = filesOf('examples/**/*.{sh,ts,yaml}').map(({ path }) =>
    path.replace('examples/', ''),
  );
  expect(linked.toSorted()).toEqual(all.toSorted());
  const texts = filesOf(...GUIDES.map((name) => `docs/guides/${name}.md`));
  expect(texts).toHaveLength(GUIDES.length);
  const without = texts.filter(({ text }) => !text.includes('../../examples/README.md'));
  expect(without.map(({ path }) => path)).toEqual([]);
});
