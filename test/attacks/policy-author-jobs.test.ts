/**
 * Tests that the author of a policy cannot use the controller's rights to create Jobs. Such an author writes the pods of
 * hooks and health checks. In a namespace in which Refit has rights for another reason, a pod could be privileged, or
 * could use the service account of the controller.
 */
import { globSync, readFileSync } from 'node:fs';
import { expect, onTestFinished, test, vi } from 'vitest';
import { upgradePolicies } from '../../src/api/kinds.ts';
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import { jobNamespacesOf } from '../../src/composition/own-namespaces.ts';
import { cattle } from '../../src/dialects/cattle/plan/cattle-dialect.ts';
import { DEFAULT_JOB_SETTINGS } from '../../src/dialects/cattle/plan/config.ts';
import { jobNamespaces, RESERVED_NAMESPACES } from '../../src/kube/job-namespaces.ts';
import { type Job, jobs, namespaces } from '../../src/kube/resources.ts';
import { ifNew, StatusError } from '../../src/kube/status-error.ts';
import { RefusedNamespace, templateJobs } from '../../src/kube/template-jobs.ts';
import { startMemoryCluster } from '../agent/memory-cluster.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import { Puppets } from '../testenv/puppets.ts';
import { RefitProcess, runRefit } from '../testenv/refit-process.ts';

const PATIENCE = { timeout: 15_000, interval: 50 };
const ROOT_POD = {
  serviceAccountName: 'system-upgrade',
  containers: [{ name: 'c', image: 'registry.example/c:1', securityContext: { privileged: true } }],
};
const hookIn = (namespace: string): UpgradePolicySpec => ({
  hooks: [
    {
      name: 'root',
      when: 'BeforePlan',
      timeout: '1m',
      job: { namespace, template: { spec: ROOT_POD } },
    },
  ],
});
const checkIn = (namespace: string): UpgradePolicySpec => ({
  health: { jobs: [{ name: 'root', namespace, spec: { template: { spec: ROOT_POD } } }] },
});

test.each([
  ['a hook in the namespace of a controller', 'system-upgrade', hookIn, /hooks\[0\]\.job/],
  ['a hook in a namespace that nobody listed', 'payments', hookIn, /has only refit-hooks/],
  ['a health check in the namespace of the system', 'kube-system', checkIn, /health\.jobs\[0\]/],
  ['a health check in a namespace that nobody listed', 'payments', checkIn, /--job-namespaces/],
])(
  '%s gets no Job: the policy, status and preview say why',
  async (_what, namespace, specOf, why) => {
    const cluster = await startMemoryCluster();
    onTestFinished(async () => await cluster.stop());
    const { admin, kubeconfig } = cluster;
    await using puppets = await Puppets.create(admin, 'w1');
    for (const name of ['k0s-autopilot', namespace])
      await ifNew(admin.create(namespaces, { metadata: { name } }));
    await admin.create(upgradePolicies, buildUpgradePolicy('author', specOf(namespace)));
    await using leader = new RefitProcess('controller', '--kubeconfig', kubeconfig);
    await puppets.plan(1);
    const accepted = await vi.waitFor(async () => {
      const { items } = await admin.list(jobs, {});
      expect(items.map(({ metadata }) => `Job ${metadata.namespace}`)).toEqual([]);
      const { status } = await admin.get(upgradePolicies, 'author');
      const found = status?.conditions?.find(({ type }) => type === 'Accepted');
      expect(found).toBeDefined();
      return found;
    }, PATIENCE);
    expect(accepted).toMatchObject({ status: 'False', message: expect.stringMatching(why) });
    const told = await vi.waitFor(async () => {
      const { stdout } = await runRefit('status', '--kubeconfig', kubeconfig);
      expect(stdout.join(' ')).toContain('PolicyUnreadable');
      return stdout.join(' ');
    }, PATIENCE);
    expect(told).toMatch(why);
    const preview = await runRefit('preview', '--kubeconfig', kubeconfig);
    expect([...preview.stdout, ...preview.stderr].join(' ')).toMatch(why);
    expect((await admin.list(jobs, {})).items).toEqual([]);
    expect(await leader.stop('SIGTERM')).toBe(0);
  },
);

test('a list with a namespace in which Refit has other rights: no controller starts', async () => {
  for (const name of ['refit-system', 'system-upgrade', 'kube-system']) {
    const { code, stderr } = await runRefit('controller', '--job-namespaces', `tests,${name}`);
    expect(code).toBe(2);
    expect(stderr.join(' ')).toContain(`the namespace "${name}" cannot be listed`);
  }
});

test('the own namespace of a process, that of its Lease and that of its plans are refused, also if they are listed', () => {
  const names = { namespace: 'upgrades', name: 'controller' };
  const dialect = cattle({ ...names, job: DEFAULT_JOB_SETTINGS });
  const config = { namespace: 'own' };
  const lease = { namespace: 'leases', name: 'x' };
  const rule = jobNamespacesOf({ config, lease, jobNamespaces: ['tests'] }, [dialect]);
  for (const name of ['own', 'leases', 'upgrades', ...RESERVED_NAMESPACES]) {
    expect([name, rule.refusalOf(name)]).toEqual([name, expect.stringContaining('other rights')]);
    expect(() => jobNamespacesOf({ config, lease, jobNamespaces: [name] }, [dialect])).toThrow(
      'cannot be listed',
    );
  }
  expect(rule.refusalOf('tests')).toBeUndefined();
  expect(rule.refusalOf('refit-hooks')).toContain('has only tests');
});

test('a Job in a refused namespace is neither read nor created, whoever asks for it', async () => {
  const asked = vi.fn();
  const client = { get: asked, create: asked } as never;
  const templates = templateJobs(client, jobNamespaces({ listed: undefined, reserved: ['own'] }));
  const { signal } = new AbortController();
  for (const namespace of ['own', 'kube-system', 'payments', '']) {
    const job: Job = { metadata: { name: 'j', namespace }, spec: {} };
    await expect(templates.find(job, signal)).rejects.toThrow(RefusedNamespace);
    await expect(templates.create(job, signal)).rejects.toThrow(RefusedNamespace);
  }
  expect(asked).not.toHaveBeenCalled();
});

test('each process that leads passes the list, and only one file creates Jobs from templates of policies', () => {
  const files = globSync('src/**/*.ts').filter((path) => !path.endsWith('.test.ts'));
  const having = (text: RegExp): string[] =>
    files.filter((path) => text.test(readFileSync(path, 'utf8'))).toSorted();
  const leaders = having(/[^n] \w*\.?prepareControllerProcess\(/);
  expect(leaders).toHaveLength(4);
  for (const path of leaders) expect(readFileSync(path, 'utf8')).toContain('jobNamespaces');
  expect(having(/\.create\(\s*jobs\b/)).toEqual(['src/kube/template-jobs.ts']);
});

/** An API server with one Job of this name that somebody else has created. */
function serverWith(foreign: Job) {
  const created: Job[] = [];
  const client = {
    get: async () => await Promise.resolve(foreign),
    create: async (_kind: unknown, job: Job, { dryRun }: { readonly dryRun?: boolean }) => {
      if (dryRun === true) return await Promise.resolve(withDefaults(job));
      created.push(job);
      throw new StatusError({ kind: 'Status', code: 409, reason: 'AlreadyExists' });
    },
  };
  return { client: client as never, created };
}

/** Returns the Job as an API server stores it. */
function withDefaults({ metadata, spec = {} }: Job): Job {
  const template = spec['template'] as { readonly metadata?: { readonly labels?: object } };
  const uid = `uid-of-${metadata.name}`;
  const labels = { ...template.metadata?.labels, 'controller-uid': uid, 'job-name': metadata.name };
  const stored = { ...template, metadata: { ...template.metadata, labels } };
  const selector = { matchLabels: { 'controller-uid': uid } };
  return {
    metadata: { ...metadata, uid },
    spec: { completionMode: 'NonIndexed', ...spec, selector, template: stored },
  };
}

const WANTED: Job = {
  metadata: { name: 'refit-backup-0123', namespace: 'refit-hooks' },
  spec: { template: { spec: { containers: [{ name: 'backup', image: 'backup:1' }] } } },
};
const COMPLETE = { conditions: [{ type: 'Complete', status: 'True' as const }] };

test.each<[string, Readonly<Record<string, unknown>>]>([
  ['another image', { template: { spec: { containers: [{ name: 'backup', image: 'true' }] } } }],
  [
    'another command',
    { template: { spec: { containers: [{ name: 'backup', image: 'backup:1', command: ['x'] }] } } },
  ],
  ['another controller of Jobs', { ...WANTED.spec, managedBy: 'example.com/x' }],
  ['pods that it does not create itself', { ...WANTED.spec, manualSelector: true }],
  ['another rule of success', { ...WANTED.spec, successPolicy: { rules: [{}] } }],
])(
  'a complete Job of the foreseeable name, but with %s, does not count as the hook',
  async (_what, spec) => {
    const foreign = { ...withDefaults({ ...WANTED, spec }), status: COMPLETE };
    const { client, created } = serverWith(foreign);
    const templates = templateJobs(client, jobNamespaces({ listed: undefined, reserved: [] }));
    const found = templates.find(WANTED, new AbortController().signal);
    await expect(found).rejects.toThrow(
      'Job refit-hooks/refit-backup-0123 exists, but does not run the pods of this template: the template was edited',
    );
    expect(created).toEqual([]);
  },
);

test('a Job that an earlier leader created counts, although the API server has added its defaults', async () => {
  const { client } = serverWith({ ...withDefaults(WANTED), status: COMPLETE });
  const templates = templateJobs(client, jobNamespaces({ listed: undefined, reserved: [] }));
  const found = await templates.find(WANTED, new AbortController().signal);
  expect(found?.status).toEqual(COMPLETE);
});
