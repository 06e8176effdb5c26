/**
 * Tests e-mail to a real mail server, on a real API server: which mails the server receives, and that the password is
 * not visible anywhere else.
 */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { upgradePolicies } from '../../src/api/kinds.ts';
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { namespaces, secrets } from '../../src/kube/resources.ts';
import { ifNew } from '../../src/kube/status-error.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import { apply, installKinds, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { type Exim, MISSING, startExim } from './exim.ts';
import { Puppets } from './puppets.ts';
import { RefitProcess } from './refit-process.ts';

const NAMESPACE = 'refit-system';
/** The Secret that `deploy/rbac-notify.yaml` names. */
const NAME = 'refit-notify';
const RIGHTS = 'deploy/rbac-notify.yaml';
const USER = 'refit';
const PASSWORD = 'P4SSW0RD-0F-THESE-TESTS';

let admin: KubeClient;

beforeAll(async () => {
  await installKinds();
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  await ifNew(admin.create(namespaces, { metadata: { name: NAMESPACE } }));
  await apply(await readFile(RIGHTS, 'utf8'));
});
afterAll(async () => {
  // Another file may delete the namespace, and then these roles with it. So this file deletes the roles itself.
  await kubectlAs('admin', ['delete', '--ignore-not-found', '-f', RIGHTS]);
  admin.close();
});

async function useSecret({ authority }: Exim, password: string): Promise<void> {
  const values = { username: USER, password, 'ca.crt': authority };
  const data = Object.fromEntries(Object.entries(values).map(([key, text]) => [key, btoa(text)]));
  const metadata = { name: NAME, namespace: NAMESPACE };
  await admin.create(secrets, { metadata, data }, { namespace: NAMESPACE });
  onTestFinished(async () => await admin.delete(secrets, NAME, { namespace: NAMESPACE }));
}

async function usePolicy(name: string, { port }: Exim): Promise<void> {
  const plans: UpgradePolicySpec['plans'] = [{ dialect: 'autopilot' }];
  const email = {
    server: `smtp://127.0.0.1:${port}`,
    from: 'refit@example.org',
    to: ['operations@example.org', 'night@example.org'],
    secretName: NAME,
  };
  const notify: UpgradePolicySpec['notify'] = [
    { name: 'on-call', type: 'Email', email, events: ['Started'] },
  ];
  await admin.create(upgradePolicies, buildUpgradePolicy(name, { plans, notify }));
  onTestFinished(async () => await admin.delete(upgradePolicies, name));
}

/** Returns everything that a user of the cluster can read about upgrades. */
async function shown(): Promise<string> {
  const kinds = 'events,noderollouts.upgrade.refit.dev,plans.autopilot.k0sproject.io';
  const { ok, stdout } = await kubectlAs('admin', ['get', kinds, '-A', '-o', 'json']);
  expect(ok).toBe(true);
  return stdout;
}

async function lead(): Promise<RefitProcess> {
  const path = await kubeconfigFor('controller');
  return new RefitProcess('controller', '--kubeconfig', path, '--lease-duration', '5s');
}

test('a mail server gets one message, after STARTTLS and with the password', async (context) => {
  if (MISSING !== undefined) context.skip(MISSING);
  await using exim = await startExim(USER, PASSWORD);
  await useSecret(exim, PASSWORD);
  await usePolicy('email-sent', exim);
  await using puppets = await Puppets.create(admin, 'email-s1', 'email-s2');
  await using leader = await lead();
  await puppets.plan(1);
  await puppets.until(async () =>
    expect(await shown()).toContain('"message": "no receiver has refused a message"'),
  );
  await puppets.until(async () => expect(await exim.accepted()).toHaveLength(1));
  const [folded = ''] = await exim.accepted();
  // A long header continues on the next line, which begins with a blank.
  const mail = folded.replaceAll(/\n[ \t]+/g, ' ');
  for (const line of [
    'Subject: Refit: [refit] autopilot/autopilot: the upgrade to v1.36.3+k0s.2 has started; 2 nodes',
    'From: Refit <refit@example.org>',
    'To: operations@example.org, night@example.org',
    'Auto-Submitted: auto-generated',
    '-auth_id refit',
  ])
    expect(mail).toContain(`${line}\n`);
  expect(mail).toMatch(/Message-ID: <[0-9a-f]{32}@example\.org>/);
  expect(mail).toMatch(/^-received_protocol esmtpsa$/m);
  for (const name of puppets.names) await puppets.says(name, 'Completed');
  await puppets.end();
  expect(await leader.stop('SIGTERM')).toBe(0);
});

test('a wrong password is named without it, and no node waits', async (context) => {
  if (MISSING !== undefined) context.skip(MISSING);
  const wrong = `${PASSWORD}-WRONG`;
  await using exim = await startExim(USER, PASSWORD);
  await useSecret(exim, wrong);
  await usePolicy('email-refused', exim);
  await using puppets = await Puppets.create(admin, 'email-r1', 'email-r2');
  await using leader = await lead();
  await puppets.plan(1);
  const refused = 'receiver on-call of UpgradePolicy email-refused';
  const problem = 'it did not accept username and password (535)';
  await puppets.until(async () => {
    const text = await shown();
    expect(text).toContain(`${refused} has not accepted a message yet: ${problem}`);
    expect(text).toContain(`${refused}: ${problem}`);
  });
  for (const name of puppets.names) await puppets.says(name, 'Completed');
  expect(await puppets.end()).toMatchObject({ state: 'Completed' });
  const told = [...leader.stdout, ...leader.stderr, await shown()].join('\n');
  expect(told).toContain(problem);
  const pair = btoa(`\0${USER}\0${wrong}`);
  for (const secret of [PASSWORD, btoa(wrong), pair]) expect(told).not.toContain(secret);
  expect(await exim.accepted()).toEqual([]);
  expect(await leader.stop('SIGTERM')).toBe(0);
});
