/** Tests on the real API server that deploy/admission-policy-k0s-plans.yaml refuses the Plans that the controller would refuse. */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type K0sUpdate, type Plan, plans, type TargetSpec } from '../../src/api/autopilot/plan.ts';
import type { UpdateConfig } from '../../src/api/autopilot/update-config.ts';
import { problemsOf } from '../../src/dialects/autopilot/plan/problems.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { buildPlan, buildUpdate, listed, SHA256, selected } from '../support/builders/plans.ts';
import { apply, kubeconfigFor, kubectlAs } from './control-plane.ts';

const POLICY = 'deploy/admission-policy-k0s-plans.yaml';
let admin: KubeClient;

const planOf = (update: Partial<K0sUpdate>): Plan =>
  buildPlan({ commands: [{ k0supdate: buildUpdate(update) }] });
const workers = (target: TargetSpec): Plan => planOf({ targets: { workers: target } });
const controllers = (target: TargetSpec): Plan => planOf({ targets: { controllers: target } });
const download = (url: string, sha256?: string): Plan =>
  planOf({ platforms: { 'linux-amd64': { url, ...(sha256 === undefined ? {} : { sha256 }) } } });
const bundle = (version: string, target: TargetSpec): Plan =>
  buildPlan({
    commands: [{ airgapupdate: { version, platforms: buildUpdate().platforms, workers: target } }],
  });

const GOOD: Readonly<Record<string, Plan>> = {
  'the documented Plan': buildPlan(),
  'no hash, http, a port': download('http://mirror:8080/k0s'),
  'upper case': download('HTTPS://mirror/k0s', SHA256.toUpperCase()),
  'neither id nor timestamp': {
    ...buildPlan(),
    spec: { commands: [{ k0supdate: buildUpdate() }] },
  },
  'a pre-release': planOf({ version: 'v1.36.0-rc.1+k0s.0' }),
  'a bundle of any version': bundle('2026-11', selected('pool=blue')),
  'no selector': workers(selected()),
  'every kind of requirement': workers(
    selected(
      'a=b,c==d, e != f,g in (h,i),j notin ( k ),l,!m,example.com/n=o,p=',
      'metadata.name!=w1',
    ),
  ),
  'empty values': workers(selected('a in (,b),c notin (,)')),
  'unschedulable workers': workers(selected('', 'spec.unschedulable=true,metadata.name==w1')),
  'a thousand nodes': workers(listed(...Array.from({ length: 1000 }, (_, index) => `w${index}`))),
};

const BAD: Readonly<Record<string, Plan>> = {
  'another name': { ...buildPlan(), metadata: { name: 'another' } },
  'an empty id': buildPlan({ id: '' }),
  'no command': buildPlan({ commands: [] }),
  'a command with nothing in it': buildPlan({ commands: [{ k0supdate: buildUpdate() }, {}] }),
  'a version that is none': planOf({ version: 'latest' }),
  'no version': planOf({ version: '' }),
  'a version that no node reports': planOf({ version: '1.36.3+k0s.0' }),
  'a version with the dash of an image tag': planOf({ version: 'v1.36.3-k0s.0' }),
  'a bundle without version': bundle('', listed('w1')),
  'no platform': planOf({ platforms: {} }),
  'no address': download(''),
  'another protocol': download('ftp://example.com/k0s'),
  'an address with a space': download('https://example.com/k0s '),
  'a hash of the wrong length': download('https://example.com/k0s', 'abc123'),
  'a hash of other letters': download('https://example.com/k0s', 'z'.repeat(64)),
  'concurrent 0': workers({ ...selected('a=b'), limits: { concurrent: 0 } }),
  'a node twice': workers(listed('w1', 'w2', 'w1')),
  'half a set': workers(selected('pool in (')),
  'an empty set': workers(selected('pool in ()')),
  'two requirements without a comma': workers(selected('a=b c=d')),
  'a comma too many': workers(selected('a=b,')),
  'a value that is none': workers(selected('a=-b')),
  'a field without a value': workers(selected('', 'metadata.name')),
  'a field that is none': workers(selected('', 'metadata.uid=1')),
  'a field of workers for controllers': controllers(selected('', 'spec.unschedulable=true')),
  'a mistake in a bundle': bundle('1', selected('a=b', '=')),
};

/** Works like `kubectl apply --server-side`. Resolves with the reason of the refusal, or with an empty text. */
async function applied({ metadata: { name, annotations }, ...plan }: Plan): Promise<string> {
  const object = { ...plan, metadata: { name, ...(annotations ? { annotations } : {}) } };
  const options = { type: 'apply', fieldManager: 'kubectl', force: true } as const;
  return await admin.patch(plans, name, object, options).then(() => '', String);
}

/**
 * The API server enforces a policy some time after it was written. Each attempt writes a different Plan, because the
 * policy may allow a write that changes nothing.
 */
async function enforcePolicy(): Promise<void> {
  await apply(await readFile(POLICY, 'utf8'));
  let tries = 0;
  await vi.waitFor(
    async () => expect(await applied(planOf({ version: `newest${++tries}` }))).not.toBe(''),
    {
      timeout: 150_000,
      interval: 100,
    },
  );
}

beforeAll(async () => {
  for (const kind of ['plans', 'updateconfigs'])
    await apply(await readFile(`deploy/crds/autopilot.k0sproject.io_${kind}.yaml`, 'utf8'));
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  await enforcePolicy();
  await kubectlAs('admin', ['delete', 'plans.autopilot.k0sproject.io', '--all']);
});

afterAll(async () => {
  await kubectlAs('admin', ['delete', '-f', POLICY]);
  await kubectlAs('admin', ['delete', 'plans.autopilot.k0sproject.io', '--all']);
  admin.close();
});

describe.each(Object.entries(GOOD))('%s', (_name, plan) => {
  test('is taken, by the controller as well', async () => {
    expect(problemsOf(plan)).toEqual([]);
    expect(await applied(plan)).toBe('');
    await admin.delete(plans, 'autopilot');
  });
});

describe.each(Object.entries(BAD))('%s', (_name, plan) => {
  test('is refused with the field, as by the controller', async () => {
    const [problem] = problemsOf(plan);
    const refusal = await applied(plan);
    expect(refusal).toContain('refit-k0s-plans');
    // The policy writes `[]` and `*` in the places in which the controller writes the command and the member.
    const field = /^[^:]*/.exec(problem?.message ?? '')?.[0].split(/[.[\]]+/) ?? [];
    expect(refusal).toContain(
      field.at(-1) === '1' || field.at(-1) === '' ? 'spec.commands' : field.at(-1),
    );
  });
});

test('a Plan that was there before may be paused, but not changed into another mistake', async () => {
  await kubectlAs('admin', ['delete', '-f', POLICY]);
  const old = planOf({ version: 'latest' });
  await vi.waitFor(async () => expect(await applied(old)).toBe(''), {
    timeout: 60_000,
    interval: 100,
  });
  await enforcePolicy();
  const pause = [
    'annotate',
    'plans.autopilot.k0sproject.io',
    'autopilot',
    'upgrade.refit.dev/pause=true',
  ];
  expect((await kubectlAs('admin', pause)).stderr).toBe('');
  expect(await applied(planOf({ version: 'v1.36.3+k0s.0' }))).toBe('');
  const status = { state: 'SchedulableWait', commands: [{ id: 0, state: 'SchedulableWait' }] };
  await admin.replace(
    plans,
    { ...(await admin.get(plans, 'autopilot')), status },
    { subresource: 'status' },
  );
  const [command] = buildPlan().spec.commands;
  const refusal = await applied(buildPlan({ commands: command ? [command, command] : [] }));
  expect(refusal).toContain('spec.commands: the Plan has started with another number of commands');
});

function configFor(days: readonly string[]): UpdateConfig {
  const periodic = { days: [...days], startTime: '22:00', length: '2h' };
  return {
    apiVersion: 'autopilot.k0sproject.io/v1beta2',
    kind: 'UpdateConfig',
    metadata: { name: 'admission' },
    spec: { upgradeStrategy: { type: 'periodic', periodic } },
  };
}

/** Asks the API server to check the object without storing it. Resolves with the refusal, or with an empty text. */
async function refusalOf(config: UpdateConfig): Promise<string> {
  const flags = ['create', '--dry-run=server', '-f', '-'];
  return (await kubectlAs('admin', flags, JSON.stringify(config))).stderr;
}

test.each([
  ['Tuesdsay', 'use Tuesday'],
  ['sat', 'use Saturday'],
  ['x', 'use Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday'],
  ['Caturday', 'use Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday'],
])('the day %s of an UpdateConfig is refused: %s', async (day, advice) => {
  // The API server enforces a new policy after some time.
  await vi.waitFor(
    async () =>
      expect(await refusalOf(configFor(['Monday', day]))).toContain(
        `spec.upgradeStrategy.periodic.days[]: "${day}" is not a weekday; ${advice}`,
      ),
    { timeout: 60_000, interval: 100 },
  );
});

test('correct days of an UpdateConfig, or none, are accepted', async () => {
  expect(await refusalOf(configFor(['Monday', 'Sunday']))).toBe('');
  expect(await refusalOf(configFor([]))).toBe('');
  expect(await refusalOf({ ...configFor([]), spec: {} })).toBe('');
});

test('the API server itself names targets in an airgapupdate, before any policy reads the object', async () => {
  const { metadata, ...plan } = bundle('1', selected('a=b'));
  const text = JSON.stringify({ ...plan, metadata: { name: metadata.name } });
  const documented = text.replace(/"workers":(\{.*?\}\}\})/, '"targets":{"workers":$1}');
  expect(documented).toContain('"targets":{"workers":{"discovery"');
  const flags = ['create', '--dry-run=server', '-f', '-'];
  expect((await kubectlAs('admin', flags, documented)).stderr).toContain(
    'unknown field "spec.commands[0].airgapupdate.targets"',
  );
});

test('the API server itself refuses cron as an object, and ignores a namespace', async () => {
  const flags = ['create', '--dry-run=server', '-f', '-'];
  const config = configFor(['Monday']);
  const strategy = { type: 'cron', cron: { days: ['Monday'] } };
  const wrong = JSON.stringify({ ...config, spec: { upgradeStrategy: strategy } });
  expect((await kubectlAs('admin', flags, wrong)).stderr).toContain(
    'unknown field "spec.upgradeStrategy.cron.days"',
  );
  const placed = { ...config, metadata: { ...config.metadata, namespace: 'default' } };
  expect(await kubectlAs('admin', flags, JSON.stringify(placed))).toMatchObject({ stderr: '' });
});
