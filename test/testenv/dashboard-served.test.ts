/**
 * Tests the dashboard that a controller serves, in a browser on a real API server. Each viewer has exactly the rights
 * of their own token.
 */
import { createPrivateKey, sign } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { stringify } from 'yaml';
import { plans } from '../../src/api/autopilot/plan.ts';
import { PAUSE_ANNOTATION } from '../../src/engine/model/controls.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { pkiPath } from '../../tools/controlplane/arguments.ts';
import { createAuthority, issueServer, validFrom } from '../../tools/controlplane/certs.ts';
import { startBrowser, visit } from '../ui/browser.ts';
import { auditedSince, endOfAudit } from './audit.ts';
import { apply, controlPlane, installKinds, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { Puppets } from './puppets.ts';
import { RefitProcess } from './refit-process.ts';
import {
  PROXY_ADDRESS,
  SESSION_HEADER,
  startTokenProxy,
  TOKEN_HEADER,
  type TokenProxy,
} from './token-proxy.ts';

const NAMESPACE = 'dashboard-served';
const SUBJECT = `system:serviceaccount:${NAMESPACE}`;

let admin: KubeClient;
let browser: Browser;
let controller: RefitProcess;
let folder: string;
let url: string;

beforeAll(async () => {
  await installKinds();
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  browser = await startBrowser();
  folder = await mkdtemp(join(tmpdir(), 'refit-served-'));
  const subject = { commonName: 'ui' };
  const authority = { ...createAuthority(subject, validFrom(Date.now())), subject };
  const names = { dns: ['localhost'], addresses: ['127.0.0.1'] };
  const { certificate, key } = issueServer(authority, names, validFrom(Date.now()));
  await writeFile(join(folder, 'tls.crt'), certificate);
  await writeFile(join(folder, 'tls.key'), key);
  await apply(
    accounts()
      .map((object) => stringify(object))
      .join('---\n'),
  );
  const path = await kubeconfigFor('controller');
  // Users connect directly or through the proxy.
  const proxy = ['--ui-token-header', TOKEN_HEADER, '--ui-trusted-proxy', `${PROXY_ADDRESS}/32`];
  const ui = ['--ui-address', '127.0.0.1:0', '--ui-cert-dir', folder, ...proxy];
  controller = new RefitProcess(
    'controller',
    '--kubeconfig',
    path,
    '--lease-duration',
    '5s',
    ...ui,
  );
  await vi.waitFor(() => expect(servedPort(controller)).toBeGreaterThan(0), {
    timeout: 60_000,
    interval: 200,
  });
  url = `https://127.0.0.1:${servedPort(controller)}/`;
}, 180_000);
afterAll(async () => {
  expect(await controller.stop('SIGTERM')).toBe(0);
  await browser.close();
  await kubectlAs('admin', ['delete', 'namespace', NAMESPACE, '--wait=false']);
  await kubectlAs('admin', [
    'delete',
    'clusterrolebinding',
    ...BOUND.map(([name]) => `${NAMESPACE}-${name}`),
  ]);
  await rm(folder, { recursive: true });
  admin.close();
});

const BOUND = [
  ['viewer', 'refit-viewer'],
  ['operator', 'refit-viewer'],
  ['operator-acts', 'refit-operator'],
  ['leaver', 'refit-viewer'],
] as const;

function accounts(): object[] {
  const account = (name: string): object => ({
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name, namespace: NAMESPACE },
  });
  const bindings = BOUND.map(([name, role]) => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: `${NAMESPACE}-${name}` },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    subjects: [{ kind: 'ServiceAccount', name: name.replace('-acts', ''), namespace: NAMESPACE }],
  }));
  const space = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } };
  return [space, ...['viewer', 'operator', 'leaver', 'nobody'].map(account), ...bindings];
}

function servedPort({ stderr }: RefitProcess): number {
  const line = stderr.find((text) => text.includes('the dashboard is served'));
  return line === undefined ? 0 : (JSON.parse(line) as { port: number }).port;
}

async function tokenOf(account: string): Promise<string> {
  const { stdout } = await kubectlAs('admin', ['create', 'token', account, '-n', NAMESPACE]);
  return stdout.trim();
}

/** A token as the API server would have made it, which expired an hour ago. */
async function expiredToken(account: string): Promise<string> {
  const token = await tokenOf(account);
  const [head = '', payload = ''] = token.split('.');
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as {
    exp: number;
    iat: number;
    nbf: number;
  };
  const hours = (time: number, count: number): number => time - count * 3600;
  const old = {
    ...claims,
    exp: hours(claims.iat, 1),
    iat: hours(claims.iat, 2),
    nbf: hours(claims.nbf, 2),
  };
  const text = `${head}.${Buffer.from(JSON.stringify(old)).toString('base64url')}`;
  const key = createPrivateKey(await readFile(pkiPath(controlPlane().directory, 'sa.key')));
  const signature = sign('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' });
  return `${text}.${signature.toString('base64url')}`;
}

async function open() {
  return await visit(browser, url, { ignoreHTTPSErrors: true });
}

async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel('Bearer token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/**
 * Returns all lines except those about the answer 401. The browser logs this answer, after which the page asks the user
 * to sign in.
 */
function others(strays: readonly string[]): string[] {
  return strays.filter((line) => !line.includes('status of 401'));
}

test('a viewer sees everything, is refused each action with the missing right, and signs out', async () => {
  const began = await endOfAudit();
  await using puppets = await Puppets.create(admin, 'served-v1', 'served-v2');
  await puppets.plan(1);
  await puppets.says('served-v1', 'Restart');
  await using visited = await open();
  const { page, strays } = visited;
  await signIn(page, await tokenOf('viewer'));
  await page.getByText(`Signed in as ${SUBJECT}:viewer`).waitFor();
  await page.getByText('running 0/2').waitFor();
  await page.getByRole('option', { name: 'served-v1' }).getByText('Restart').waitFor();
  expect(await page.getByText(/^Not shown/).allTextContents()).toEqual([]);
  await page.getByRole('option', { name: 'served-v1' }).click();
  const drawer = page.getByRole('complementary', { name: 'served-v1' });
  await drawer.getByRole('heading', { name: 'Events' }).waitFor();
  expect(await drawer.getByText('The Events cannot be read').count()).toBe(0);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Pause', exact: true }).click();
  const refused = `Refused: the user ${SUBJECT}:viewer has no right to patch plans.autopilot.k0sproject.io.`;
  await page.getByText(refused, { exact: true }).waitFor();
  const [cookie] = await page.context().cookies();
  expect(cookie).toMatchObject({
    name: '__Host-refit-token',
    httpOnly: true,
    secure: true,
    sameSite: 'Strict',
    expires: -1,
  });
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('Bearer token').waitFor();
  expect(await page.context().cookies()).toEqual([]);
  expect(others(strays)).toEqual([]);
  const reviews = (await auditedSince(began, 'refit-controller')).filter(({ requestURI }) =>
    /reviews/.test(requestURI),
  );
  expect(reviews).toEqual([]);
});

test('an operator pauses and resumes the plan, and the API server records that user', async () => {
  const began = await endOfAudit();
  await using puppets = await Puppets.create(admin, 'served-o1', 'served-o2');
  await puppets.plan(1);
  await puppets.says('served-o1', 'Restart');
  await using visited = await open();
  const { page, strays } = visited;
  const isPaused = async (): Promise<boolean> =>
    (await admin.get(plans, 'autopilot')).metadata.annotations?.[PAUSE_ANNOTATION] !== undefined;
  await signIn(page, await tokenOf('operator'));
  await page.getByRole('button', { name: 'Pause', exact: true }).click();
  await page.getByText('Plan autopilot (id1) is paused.').waitFor();
  expect(await isPaused()).toBe(true);
  await page.getByRole('button', { name: 'Resume', exact: true }).click();
  await page.getByText('Plan autopilot (id1) continues.').waitFor();
  expect(await isPaused()).toBe(false);
  const patches = (await auditedSince(began, `${SUBJECT}:operator`)).filter(
    ({ verb, objectRef }) => verb === 'patch' && objectRef?.resource === 'plans',
  );
  expect(patches.map(({ user }) => user.username)).toEqual([
    `${SUBJECT}:operator`,
    `${SUBJECT}:operator`,
  ]);
  expect(others(strays)).toEqual([]);
});

test('a user without any right signs in, and reads which rights are missing', async () => {
  await using puppets = await Puppets.create(admin, 'served-n1');
  await puppets.plan(1);
  await using visited = await open();
  const { page } = visited;
  await signIn(page, await tokenOf('nobody'));
  await page.getByText(`Signed in as ${SUBJECT}:nobody`).waitFor();
  const missing = page.getByText(
    new RegExp(`^Not shown: .*User "${SUBJECT}:nobody" cannot list resource "plans"`),
  );
  await missing.first().waitFor();
  expect(await page.getByText('served-n1').count()).toBe(0);
});

test('tokens that are invalid or have expired open nothing', async () => {
  await using visited = await open();
  const { page } = visited;
  const refusal = 'The API server does not accept this token: it is invalid or has expired.';
  for (const token of ['nonsense', await expiredToken('operator')]) {
    await signIn(page, token);
    await page.getByText(refusal).waitFor();
    expect(await page.context().cookies()).toEqual([]);
    await page.goto(url);
  }
});

test('a viewer whose account is deleted is signed out of an open page', async () => {
  await using visited = await open();
  const { page } = visited;
  await signIn(page, await tokenOf('leaver'));
  await page.getByText(`Signed in as ${SUBJECT}:leaver`).waitFor();
  await kubectlAs('admin', ['delete', 'serviceaccount', 'leaver', '-n', NAMESPACE]);
  await page.getByLabel('Bearer token').waitFor({ timeout: 60_000 });
});

async function startProxy(connections: number): Promise<TokenProxy> {
  const tokens = new Map<string, string>();
  for (const account of ['viewer', 'operator', 'nobody'])
    tokens.set(account, await tokenOf(account));
  return await startTokenProxy(url, tokens, connections);
}

async function openAs(account: string, proxy: TokenProxy) {
  return await visit(browser, proxy.url, { extraHTTPHeaders: { [SESSION_HEADER]: account } });
}

test('behind a proxy, users act with their own rights, and the API server records them', async () => {
  const began = await endOfAudit();
  await using puppets = await Puppets.create(admin, 'proxied-o1');
  await puppets.plan(1);
  await puppets.says('proxied-o1', 'Restart');
  await using proxy = await startProxy(16);
  await using operating = await openAs('operator', proxy);
  await using viewing = await openAs('viewer', proxy);
  await operating.page.getByText(`Signed in as ${SUBJECT}:operator`).waitFor();
  await viewing.page.getByText(`Signed in as ${SUBJECT}:viewer`).waitFor();
  expect(await operating.page.getByRole('button', { name: 'Sign out' }).count()).toBe(0);
  await viewing.page.getByRole('button', { name: 'Pause', exact: true }).click();
  const refused = `Refused: the user ${SUBJECT}:viewer has no right to patch plans.autopilot.k0sproject.io.`;
  await viewing.page.getByText(refused, { exact: true }).waitFor();
  await operating.page.getByRole('button', { name: 'Pause', exact: true }).click();
  await operating.page.getByText('Plan autopilot (id1) is paused.').waitFor();
  for (const { page, strays } of [operating, viewing]) {
    expect(await page.context().cookies()).toEqual([]);
    expect(strays).toEqual([]);
  }
  const patches = async (account: string) =>
    (await auditedSince(began, `${SUBJECT}:${account}`)).filter(
      ({ verb, objectRef }) => verb === 'patch' && objectRef?.resource === 'plans',
    );
  expect((await patches('operator')).length).toBe(1);
  const isImpersonated = (await auditedSince(began, 'refit-controller')).filter(
    (event) => 'impersonatedUser' in event,
  );
  expect(isImpersonated).toEqual([]);
});

test('users who share one connection of a proxy see only what their own rights allow', async () => {
  await using puppets = await Puppets.create(admin, 'proxied-s1');
  await puppets.plan(1);
  await puppets.says('proxied-s1', 'Restart');
  await using proxy = await startProxy(1);
  const read = async (account: string): Promise<string> => {
    const headers = { [SESSION_HEADER]: account, [TOKEN_HEADER]: 'forged' };
    const answer = await fetch(new URL('api/state', proxy.url), { headers });
    return `${answer.status} ${await answer.text()}`;
  };
  const isOwn: Record<string, (state: string) => void> = {
    viewer(state) {
      expect(state).toContain(`"viewer":"${SUBJECT}:viewer"`);
      expect(state).toContain('proxied-s1');
    },
    nobody(state) {
      expect(state).toContain(`"viewer":"${SUBJECT}:nobody"`);
      expect(state).toContain(`cannot list resource`);
      expect(state).not.toContain('proxied-s1');
    },
    stranger(state) {
      expect(state).toBe(`401 The proxy sent no token in the header ${TOKEN_HEADER}.\n`);
    },
  };
  for (const [account, check] of Object.entries(isOwn))
    await vi.waitFor(async () => check(await read(account)), { timeout: 60_000, interval: 200 });
  // Each account has now received its own answer once. In the following, the requests of the accounts alternate on the
  // connection.
  const mixed = Array.from({ length: 5 }, () => Object.keys(isOwn)).flat();
  const answers = await Promise.all(mixed.map(async (account) => await read(account)));
  for (const [index, account] of mixed.entries()) isOwn[account]?.(answers[index] ?? '');
  expect(proxy.connections()).toBe(1);
});

test('a token in the header from another address than that of the proxy is refused, also if it is valid', async () => {
  const headers = { [TOKEN_HEADER]: await tokenOf('operator') };
  const answer = await visit(browser, url, { ignoreHTTPSErrors: true, extraHTTPHeaders: headers });
  await using visited = answer;
  const text = `The header ${TOKEN_HEADER} is accepted only from the addresses of --ui-trusted-proxy, and 127.0.0.1 is not one of them.`;
  await visited.page.getByText(text).waitFor();
});
