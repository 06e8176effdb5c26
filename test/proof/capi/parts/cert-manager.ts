/**
 * Tests certificates from cert-manager, as docs/guides/cluster-api.md describes: certificates for the hooks and the
 * managers, and their renewal while everything runs.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { parse } from 'yaml';
import {
  type Condition,
  type KubeObject,
  namespaced,
  secrets,
} from '../../../../src/kube/resources.ts';
import { applyManifest } from '../../../../tools/controlplane/apply.ts';
import { conditionOf } from '../machines/settled.ts';
import { CERT_MANAGER, startCertManager } from '../managers/cert-manager.ts';
import type { Scene } from '../scene.ts';
import { authorityFrom, discovered, injectedAuthority } from './registration.ts';
import { wantWorkers } from './update.ts';

interface Certificate extends KubeObject {
  readonly status?: { readonly conditions?: Condition[]; readonly revision?: number };
}

const certificates = namespaced<Certificate>('cert-manager.io/v1', 'Certificate');
const REFIT = 'refit-system';
const HOOKS = 'refit-capi-extension-tls';
const CLIENT = 'cluster-api-hooks-client';
const MANAGERS = {
  core: 'capi-system',
  'control-plane': 'capi-kubeadm-control-plane-system',
} as const;

export async function certManager(scene: Scene): Promise<void> {
  const { checks, cluster, kubeconfig, managers, options } = scene;
  if (options.certManager === undefined) throw new Error('cert-manager was not built');
  const issued = async (name: string, namespace: string, revision = 1): Promise<void> =>
    await scene.until(`revision ${revision} of Certificate ${name}`, async () => {
      const certificate = await cluster.client.get(certificates, name, { namespace });
      return (
        conditionOf(certificate, 'Ready')?.status === 'True' &&
        certificate.status?.revision === revision
      );
    });
  const spaces = [CERT_MANAGER, REFIT, ...Object.values(MANAGERS)];
  await scene.apply(
    ...spaces.map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })),
  );
  const running = await startCertManager(scene, options.certManager);
  try {
    await checks.check('cert-manager issues what deploy/ and the chart ask for', async () => {
      await applyManifest(kubeconfig, await readFile('deploy/cert-manager-capi.yaml', 'utf8'));
      const text = await readFile('deploy/chart/manifests/cert-manager/certificate.yaml', 'utf8');
      const wanted = parse(text) as { spec: object };
      // In this proof the managers call the extension at 127.0.0.1 and not through a Service.
      await scene.apply({ ...wanted, spec: { ...wanted.spec, ipAddresses: ['127.0.0.1'] } });
      await issued(HOOKS, REFIT);
      await Promise.all(
        Object.values(MANAGERS).map(async (namespace) => await issued(CLIENT, namespace)),
      );
      return [];
    });
    await checks.check(
      'the extension is discovered with them, and core puts in the CA of the Secret',
      async () => {
        await scene.running.stop();
        await mount(scene, HOOKS, REFIT, 'hooks');
        await scene.startExtension('extension-cert-manager');
        for (const [name, namespace] of Object.entries(MANAGERS)) {
          const manager = name as keyof typeof MANAGERS;
          await mount(scene, CLIENT, namespace, 'managers');
          await managers.kill(manager);
          await managers.start(manager);
        }
        await authorityFrom(scene, `${REFIT}/${HOOKS}`);
        await discovered(scene, 'True');
        const authority = (await cluster.client.get(secrets, HOOKS, { namespace: REFIT })).data?.[
          'ca.crt'
        ];
        return (await injectedAuthority(scene)) === authority
          ? []
          : ['caBundle is not that of the Secret'];
      },
    );
    await updated(scene, 'an update in place ends with them');
    await checks.check('cert-manager issues another one, which serves at once', async () => {
      const condition = {
        type: 'Issuing',
        status: 'True',
        reason: 'ManuallyTriggered',
        message: 'as cmctl renew',
      };
      const { status } = await cluster.client.get(certificates, HOOKS, { namespace: REFIT });
      const conditions = [...(status?.conditions ?? []), condition];
      const how = { type: 'merge', subresource: 'status', namespace: REFIT } as const;
      await cluster.client.patch(certificates, HOOKS, { status: { conditions } }, how);
      await issued(HOOKS, REFIT, 2);
      const before = await served(scene);
      await mount(scene, HOOKS, REFIT, 'hooks');
      await scene.until(
        'another certificate at the hooks',
        async () => (await served(scene)) !== before,
      );
      return [];
    });
    await updated(scene, 'and an update in place ends with that one');
  } finally {
    await running.stop();
  }
}

/**
 * Writes the data of a Secret into files, as a kubelet does when it mounts the Secret. The process reads the files of
 * `folder`.
 */
async function mount(
  { cluster, options }: Scene,
  name: string,
  namespace: string,
  folder: string,
): Promise<void> {
  const { data = {} } = await cluster.client.get(secrets, name, { namespace });
  for (const [file, content] of Object.entries(data))
    await writeFile(join(options.directory, folder, file), Buffer.from(content, 'base64'), {
      mode: 0o600,
    });
}

/** The fingerprint of the certificate that the hooks show. */
async function served({ extension }: Scene): Promise<string> {
  const { hostname: host, port } = new URL(extension.url);
  return await new Promise((resolve, reject) => {
    const socket = connect({ host, port: Number(port), rejectUnauthorized: false });
    socket.once('error', reject).once('secureConnect', () => {
      resolve(socket.getPeerCertificate().fingerprint256);
      socket.destroy();
    });
  });
}

async function updated(scene: Scene, what: string): Promise<void> {
  await scene.checks.check(what, async () => {
    const before = await scene.identities('workers');
    const version = scene.nextVersion();
    await wantWorkers(scene, { version });
    await scene.settled('workers', version);
    return await scene.wrongAfter('workers', version, before);
  });
}
