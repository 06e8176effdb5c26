/** Tests what the values of the chart about the page change, and that the API server accepts the objects. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseAllDocuments, stringify } from 'yaml';
import type { KubeObject } from '../../src/kube/resources.ts';
import { buildTool } from './build-tool.ts';
import { kubectlAs, ON_SERVER } from './control-plane.ts';
import { expectHelm, helm } from './helm.ts';

const NAMESPACE = 'refit-system';
const TEMPLATE = ['template', 'refit', 'deploy/chart', '--namespace', NAMESPACE];

let directory = '';

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-chart-'));
  await buildTool('helm');
}, 15 * 60_000);

afterAll(async () => await rm(directory, { recursive: true }));

async function templated(...args: readonly string[]): Promise<KubeObject[]> {
  const text = await expectHelm(directory, [...TEMPLATE, ...args]);
  return parseAllDocuments(text, { version: '1.1' })
    .map((document) => document.toJS() as KubeObject | null)
    .filter((object) => object !== null);
}

const nameOf = ({ kind, metadata }: KubeObject): string =>
  `${kind} ${metadata.namespace ?? ''}/${metadata.name}`;

test('the dashboard: a Service, a NetworkPolicy and a Certificate, and not one right more', async () => {
  const ui = ['--set=ui.enabled=true', '--set=ui.issuer=ca', '--set=ui.hosts={refit.example.com}'];
  const all = await templated(...ui, '--set-json=ui.from=[{"podSelector":{}}]');
  const without = new Set((await templated()).map(nameOf));
  const added = all.filter((object) => !without.has(nameOf(object)));
  expect(added.map(nameOf).toSorted()).toEqual([
    'Certificate refit-system/refit-ui-tls',
    'NetworkPolicy refit-system/refit-ui',
    'Service refit-system/refit-ui',
  ]);
  expect(added.find(({ kind }) => kind === 'Certificate')).toMatchObject({
    spec: {
      dnsNames: ['refit-ui.refit-system.svc', 'refit.example.com'],
      issuerRef: { name: 'ca' },
    },
  });
  expect(added.find(({ kind }) => kind === 'NetworkPolicy')).toMatchObject({
    spec: { ingress: [{ from: [{ podSelector: {} }], ports: [{ port: 8443 }] }] },
  });
  expect(all.find(({ kind }) => kind === 'Deployment')).toMatchObject({
    spec: {
      template: {
        spec: {
          containers: [
            {
              args: [
                'controller',
                '--health-address=:8080',
                '--ui-address=:8443',
                '--ui-cert-dir=/ui-certs',
                '--ui-host=refit.example.com',
              ],
              ports: [{ name: 'health' }, { name: 'ui', containerPort: 8443 }],
              volumeMounts: [{ name: 'ui-certs', mountPath: '/ui-certs', readOnly: true }],
            },
          ],
          volumes: [{ name: 'ui-certs', secret: { secretName: 'refit-ui-tls' } }],
        },
      },
    },
  });
  const rights = (objects: readonly KubeObject[]): KubeObject[] =>
    objects.filter(({ kind }) => /Role/.test(kind ?? ''));
  expect(rights(all)).toEqual(rights(await templated()));
  const objects = all.filter(
    ({ kind }) => kind !== 'Certificate' && kind !== 'CustomResourceDefinition',
  );
  const text = objects.map((object) => stringify(object, { version: '1.1' })).join('---\n');
  const { ok, stderr } = await kubectlAs('admin', [...ON_SERVER, '--dry-run=server'], text);
  expect({ ok, stderr: ok ? '' : stderr }).toEqual({ ok: true, stderr: '' });
});

test('a proxy that signs users in: the header and the addresses become options, and each needs the other', async () => {
  const ui = ['--set=ui.enabled=true'];
  const header = '--set=ui.tokenHeader=X-Forwarded-Access-Token';
  const addresses = '--set=ui.trustedProxies={10.1.2.3,10.244.0.0/16}';
  const all = await templated(...ui, header, addresses);
  expect(all.find(({ kind }) => kind === 'Deployment')).toMatchObject({
    spec: {
      template: {
        spec: {
          containers: [
            {
              args: expect.arrayContaining([
                '--ui-token-header=X-Forwarded-Access-Token',
                '--ui-trusted-proxy=10.1.2.3',
                '--ui-trusted-proxy=10.244.0.0/16',
              ]) as string[],
            },
          ],
        },
      },
    },
  });
  const refused = async (one: string): Promise<string> => {
    const { ok, stderr } = await helm(directory, [...TEMPLATE, ...ui, one]);
    return ok ? '' : stderr;
  };
  expect(await refused(header)).toContain('ui.tokenHeader needs ui.trustedProxies');
  expect(await refused(addresses)).toContain('ui.trustedProxies needs ui.tokenHeader');
});

test('a dashboard without its controller: refused with the field', async () => {
  const args = ['--set=ui.enabled=true', '--set=k0s.enabled=false', '--set=kubeadm.enabled=true'];
  expect(await helm(directory, [...TEMPLATE, ...args])).toMatchObject({
    ok: false,
    stderr: expect.stringContaining('ui.enabled needs k0s.enabled') as string,
  });
});

interface Container {
  readonly args: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
}

interface Deployment extends KubeObject {
  readonly spec?: {
    readonly template?: { readonly spec: { readonly containers: readonly Container[] } };
  };
}

test('the name of the cluster and the address of the page reach each controller, and its own options win', async () => {
  const objects = await templated(
    '--set=cattle.enabled=true',
    '--set=capi.enabled=true',
    '--set-string=capi.payloadUrl=https://mirror.example.com/\\{version\\}/k0s',
    '--set=clusterName=prod',
    '--set=ui.url=https://refit.example.com',
    '--set=k0s.extraArgs={--cluster-name=other}',
    '--set-string=cattle.env.SYSTEM_UPGRADE_CONTROLLER_UI_URL=https://b.example.com',
  );
  const containers = (objects as readonly Deployment[])
    .filter(({ kind }) => kind === 'Deployment')
    .flatMap(({ spec }) => spec?.template?.spec.containers ?? []);
  const of = (command: string): Container =>
    containers.find(({ args }) => args[0] === command) ?? { args: [] };
  const own = ['--ui-url=https://refit.example.com', '--cluster-name=prod'];
  expect(of('capi-extension').args).toEqual(expect.arrayContaining(own));
  const { args } = of('controller');
  expect(args).toEqual(expect.arrayContaining(own));
  // The last of two equal options counts.
  expect(args.indexOf('--cluster-name=other')).toBeGreaterThan(args.indexOf('--cluster-name=prod'));
  const values = of('system-upgrade-controller').env?.filter(({ name }) =>
    /CLUSTER_NAME|UI_URL/.test(name),
  );
  expect(values).toEqual([
    { name: 'SYSTEM_UPGRADE_CONTROLLER_CLUSTER_NAME', value: 'prod' },
    { name: 'SYSTEM_UPGRADE_CONTROLLER_UI_URL', value: 'https://b.example.com' },
  ]);
});

test('an address of the page with a fragment: refused with the field, because messages append one', async () => {
  expect(
    await helm(directory, [...TEMPLATE, '--set=ui.url=https://a.example.com#b']),
  ).toMatchObject({
    ok: false,
    stderr: expect.stringContaining("at '/ui/url'") as string,
  });
});
