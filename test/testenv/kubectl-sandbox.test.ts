/** Tests that the real kubectl works on the API server in memory, without flags that a real cluster does not need. */
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type Plane, startSandboxPlane } from '../../sandbox/cluster/plane.ts';
import { controlPlane, kubectlAs } from './control-plane.ts';

const DEFINITIONS = new URL('../../deploy/crds/', import.meta.url).pathname;
const PLAN = {
  apiVersion: 'upgrade.cattle.io/v1',
  kind: 'Plan',
  metadata: { name: 'os', namespace: 'default' },
  spec: { version: 'v2', upgrade: { image: 'example.com/os' } },
};
const NODE = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'n1', labels: { 'node-role.kubernetes.io/worker': '' } },
};

/** Milliseconds within which a new definition must be served. */
const PATIENCE = { timeout: 30_000, interval: 200 };

let directory: string;
let plane: Plane;

/** Resolves with the output of kubectl. Rejects with the error output of kubectl if it fails. */
async function kubectl(...args: string[]): Promise<string> {
  const env = { KUBECONFIG: await plane.kubeconfig('admin'), HOME: directory };
  const { stdout } = await promisify(execFile)(controlPlane().kubectl, args, { env });
  return stdout;
}

async function file(name: string, object: unknown): Promise<string> {
  const path = join(directory, name);
  await writeFile(path, JSON.stringify(object));
  return path;
}

const columns = (table: string): string[] => (table.split('\n')[0] ?? '').split(/ {2,}/);

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-kubectl-'));
  plane = await startSandboxPlane(directory);
  expect((await readdir(DEFINITIONS)).length).toBeGreaterThan(0);
  await kubectl('apply', '-f', DEFINITIONS);
  await vi.waitFor(async () => await kubectl('get', 'plans.upgrade.cattle.io'), PATIENCE);
  await kubectl('apply', '-f', await file('plan.json', PLAN));
  await kubectl('apply', '-f', await file('node.json', NODE));
});

afterAll(async () => {
  await plane.stop();
  await rm(directory, { recursive: true });
});

test('apply changes what was applied before, and finds unknown fields', async () => {
  const changed = { ...PLAN, spec: { ...PLAN.spec, version: 'v3' } };
  expect(await kubectl('apply', '-f', await file('changed.json', changed))).toContain('configured');
  const wrong = { ...PLAN, spec: { ...PLAN.spec, versoin: 'v4' } };
  await expect(kubectl('apply', '-f', await file('wrong.json', wrong))).rejects.toThrow(
    'unknown field "spec.versoin"',
  );
  const labelled = { ...NODE, metadata: { ...NODE.metadata, labels: { a: 'b' } } };
  expect(await kubectl('apply', '-f', await file('node.json', labelled))).toContain('configured');
});

test('apply of a kind that is not served says so, as on a real API server', async () => {
  const object = { apiVersion: 'nowhere.example/v1', kind: 'Widget', metadata: { name: 'w' } };
  const path = await file('widget.json', object);
  const onReal = await kubectlAs('admin', ['apply', '-f', path]);
  expect(onReal.stderr).toContain('no matches for kind "Widget" in version "nowhere.example/v1"');
  await expect(kubectl('apply', '-f', path)).rejects.toMatchObject({ stderr: onReal.stderr });
});

test('a dry run on the server changes nothing', async () => {
  const path = await file('dry.json', { ...PLAN, metadata: { ...PLAN.metadata, name: 'dry' } });
  expect(await kubectl('apply', '--dry-run=server', '-f', path)).toContain('(server dry run)');
  await expect(kubectl('get', 'plans.upgrade.cattle.io', 'dry')).rejects.toThrow('not found');
  expect(await kubectl('apply', '--server-side', '--dry-run=server', '-f', path)).toContain('dry');
});

test('explain shows the fields of custom and of built-in kinds', async () => {
  const version = '--api-version=upgrade.cattle.io/v1';
  const schema = await readFile(join(DEFINITIONS, 'upgrade.cattle.io_plans.yaml'), 'utf8');
  const explained = await kubectl('explain', 'plans.spec.concurrency', version);
  expect(explained).toContain('FIELD: concurrency <integer>');
  const said = explained.split('DESCRIPTION:\n')[1]?.trim().split('\n')[0] ?? '';
  expect(schema).toContain(said);
  expect(await kubectl('explain', 'nodes.spec.taints')).toMatch(/effect\s+<string>/);
  expect(await kubectl('explain', 'jobs.spec', '--recursive')).toMatch(/backoffLimit\s+<integer>/);
});

test('get shows the columns of the definitions and of Kubernetes', async () => {
  const plans = await kubectl('get', 'plans.upgrade.cattle.io');
  expect(columns(plans).slice(0, 4)).toEqual(['NAME', 'IMAGE', 'CHANNEL', 'VERSION']);
  expect(plans).toMatch(/^os +example\.com\/os/m);
  await kubectl('cordon', 'n1');
  const nodes = await kubectl('get', 'nodes');
  expect(columns(nodes).map((each) => each.trim())).toEqual([
    'NAME',
    'STATUS',
    'ROLES',
    'AGE',
    'VERSION',
  ]);
  expect(nodes).toMatch(/^n1 +Unknown,SchedulingDisabled/m);
  expect(columns(await kubectl('get', 'nodes', '-o', 'wide'))).toContain('INTERNAL-IP');
  expect(await kubectl('get', 'crd', '--no-headers')).toContain('plans.upgrade.cattle.io');
});

test('get events and describe', async () => {
  const event = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: 'e', namespace: 'default' },
    involvedObject: { kind: 'Plan', namespace: 'default', name: 'os' },
    reason: 'Done',
    message: 'it is done',
    type: 'Normal',
  };
  await kubectl('create', '-f', await file('event.json', event));
  const events = await kubectl('get', 'events');
  expect(columns(events).map((each) => each.trim())).toEqual([
    'LAST SEEN',
    'TYPE',
    'REASON',
    'OBJECT',
    'MESSAGE',
  ]);
  expect(events).toMatch(/Normal +Done +plan\/os +it is done/);
  expect(await kubectl('describe', 'node', 'n1')).toMatch(/Unschedulable: +true/);
});

const POD = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'default', labels: { app: 'web' } },
  spec: {
    nodeName: 'n1',
    terminationGracePeriodSeconds: 1,
    containers: [{ name: 'c', image: 'example.com/c' }],
  },
};
const READY = JSON.stringify({
  status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
});

test.each([
  ['create namespace x', 'namespace/x created'],
  ['create secret generic s --from-literal=a=b', 'secret/s created'],
  ['create configmap c --from-literal=a=b', 'configmap/c created'],
  ['create job j --image=example.com/j -- true', 'job.batch/j created'],
  ['create poddisruptionbudget p --selector=a=b --min-available=1', 'p created'],
  ['run r --image=example.com/r', 'pod/r created'],
  ['get all', 'pod/r'],
  ['delete pod r --timeout=60s', 'pod "r" deleted'],
  ['label node n1 tried=yes', 'node/n1 labeled'],
  ['annotate node n1 a=b', 'node/n1 annotated'],
  ['patch node n1 -p {"metadata":{"labels":{"b":"c"}}}', 'node/n1 patched'],
  ['taint node n1 a=b:NoSchedule', 'node/n1 tainted'],
  ['describe plans.upgrade.cattle.io os', 'example.com/os'],
  ['api-resources', 'plans'],
  ['auth can-i create plans.upgrade.cattle.io', 'yes'],
  ['auth can-i --list', '*.*'],
  ['auth whoami', `@${hostname()}`],
  ['cluster-info', 'control plane'],
  ['get events --all-namespaces', 'LAST SEEN'],
  ['wait --for=jsonpath={.spec.version} plans.upgrade.cattle.io/os --timeout=60s', 'condition met'],
  ['version', 'Server Version: v1.36'],
  ['delete namespace x --timeout=60s', 'namespace "x" deleted'],
])('kubectl %s works as on a real cluster', async (command, expected) => {
  expect(await kubectl(...command.split(' '))).toContain(expected);
});

test('kubectl get shows that no workload is there, and kubectl names a missing one as on a real cluster', async () => {
  const commands = [
    ['get', 'deploy,sts,ds,rs,cj,svc,pvc', '-n', 'kube-public'],
    ['scale', 'deploy', 'web', '--replicas=2'],
    ['rollout', 'status', 'deploy/web'],
    ['logs', 'deploy/web'],
    ['logs', 'none'],
    ['exec', 'none', '--', 'true'],
    ['top', 'nodes'],
  ];
  for (const command of commands) {
    const { stdout, stderr } = await kubectlAs('admin', command);
    const here = await kubectl(...command).then(
      (text) => ({ stdout: text }),
      (error: { stderr: string }) => ({ stderr: error.stderr }),
    );
    expect({ stdout, stderr }, command.join(' ')).toMatchObject(here);
  }
});

const STREAMS: [string, ...string[]][] = [['logs'], ['exec', '--', 'true'], ['attach']];

test.each<[string, ...string[]]>(STREAMS)(
  'kubectl %s of a pod says in words that no container runs',
  async (verb, ...rest) => {
    const bare = { ...POD, metadata: { ...POD.metadata, name: 'bare' } };
    const unbound = { ...bare, spec: { containers: POD.spec.containers } };
    await kubectl('apply', '-f', await file('unbound.json', unbound));
    await expect(kubectl(verb, 'bare', ...rest)).rejects.toThrow(
      'pod bare does not have a host assigned',
    );
    await kubectl('delete', 'pod', 'bare', '--timeout=60s');
    await kubectl('apply', '-f', await file('bare.json', bare));
    await expect(kubectl(verb, 'bare', ...rest)).rejects.toThrow('starts no containers');
    await kubectl('delete', 'pod', 'bare', '--timeout=60s');
  },
);

test('kubectl delete ends when the grace period of a pod with a node is over', async () => {
  await kubectl('apply', '-f', await file('pod.json', POD));
  expect(await kubectl('delete', 'pod', 'web', '--timeout=60s')).toContain('deleted');
});

test('kubectl drain evicts pods, so that a disruption budget refuses the eviction', async () => {
  await kubectl('apply', '-f', await file('pod.json', POD));
  const budget = ['--selector=app=web', '--min-available=1'];
  await kubectl('create', 'poddisruptionbudget', 'web', ...budget);
  await kubectl('patch', 'pod', 'web', '--subresource=status', '-p', READY);
  const drain = ['drain', 'n1', '--force'];
  await expect(kubectl(...drain, '--timeout=2s')).rejects.toThrow('disruption budget');
  await kubectl('delete', 'poddisruptionbudget', 'web');
  expect(await kubectl(...drain, '--timeout=60s')).toContain('node/n1 drained');
  expect(await kubectl('uncordon', 'n1')).toContain('uncordoned');
});
