/** Installs the definitions of the managers' kinds, and their webhooks at the managers' own addresses. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../../../../src/kube/resources.ts';
import { applyManifest } from '../../../../tools/controlplane/apply.ts';
import type { Program } from './programs.ts';

/**
 * The label that shows which version of Cluster API's contract a kind implements. The managers' kustomization sets this
 * label.
 */
const CONTRACT = 'cluster.x-k8s.io/v1beta2: v1beta2';

export async function applyDefinitions(kubeconfig: string, { config }: Program): Promise<void> {
  const folder = join(config, 'crd/bases');
  const texts = await Promise.all(
    (await readdir(folder)).map(async (file) => await readFile(join(folder, file), 'utf8')),
  );
  const labelled = texts.map((text) =>
    text.replace(/^metadata:$/m, `metadata:\n  labels:\n    ${CONTRACT}`),
  );
  await applyManifest(kubeconfig, labelled.join('\n---\n'));
}

interface WebhookConfiguration extends KubeObject {
  readonly webhooks: readonly {
    readonly clientConfig: { readonly service: { readonly path: string } };
  }[];
}

/**
 * Installs the webhooks of a manager. `url` is the URL of the manager. `authority` is the authority of its certificate,
 * in PEM.
 */
export async function applyWebhooks(
  kubeconfig: string,
  { name, config }: Program,
  url: string,
  authority: string,
) {
  const text = await readFile(join(config, 'webhook/manifests.yaml'), 'utf8');
  const caBundle = Buffer.from(authority).toString('base64');
  const items = parseAllDocuments(text)
    .map((document) => document.toJS() as WebhookConfiguration | null)
    .filter((each) => each !== null)
    .map((each) => ({
      ...each,
      metadata: { name: `${name}-${each.metadata.name}` },
      webhooks: each.webhooks.map((webhook) => ({
        ...webhook,
        clientConfig: { url: `${url}${webhook.clientConfig.service.path}`, caBundle },
      })),
    }));
  await applyManifest(
    kubeconfig,
    JSON.stringify({ apiVersion: 'v1', kind: 'List', metadata: {}, items }),
  );
}
