/** Registers the extension as docs/guides/cluster-api.md describes. Core itself inserts the CA. */

import { type Condition, clusterScoped, type KubeObject } from '../../../../src/kube/resources.ts';
import { NAMESPACE } from '../machines/objects.ts';
import { conditionOf } from '../machines/settled.ts';
import { isRealDefinition, type Scene } from '../scene.ts';

interface ExtensionConfig extends KubeObject {
  spec: { clientConfig: { url: string; caBundle?: string } };
  status?: {
    handlers?: { name: string; requestHook: { hook: string } }[];
    conditions?: Condition[];
  };
}

const extensionConfigs = clusterScoped<ExtensionConfig>(
  'runtime.cluster.x-k8s.io/v1beta2',
  'ExtensionConfig',
);
const NAME = 'refit';
const CA_SECRET = 'refit-ca';
const FROM_SECRET = 'runtime.cluster.x-k8s.io/inject-ca-from-secret';

/** Applies the Secret with the CA. Core copies the CA from the Secret into the ExtensionConfig. */
export async function setAuthority(scene: Scene, authority: string): Promise<void> {
  await scene.apply(authoritySecret(authority));
}

export function authoritySecret(authority: string): object {
  const metadata = { name: CA_SECRET, namespace: NAMESPACE };
  return { apiVersion: 'v1', kind: 'Secret', metadata, stringData: { 'ca.crt': authority } };
}

export async function discovered(
  scene: Scene,
  status: 'True' | 'False',
  name = NAME,
): Promise<void> {
  await scene.until(`Discovered=${status} of the ExtensionConfig`, async () => {
    const config = await scene.cluster.client.get(extensionConfigs, name);
    const discovery = conditionOf(config, 'Discovered');
    const isOfNow = discovery?.observedGeneration === config.metadata.generation;
    const isKnown = status === 'False' || config.status?.handlers !== undefined;
    return isKnown && isOfNow && discovery?.status === status;
  });
}

/** Makes core take the CA from a Secret. `secret` has the namespace and the name of the Secret. */
export async function authorityFrom({ cluster }: Scene, secret: string): Promise<void> {
  const metadata = { annotations: { [FROM_SECRET]: secret } };
  const spec = { clientConfig: { caBundle: null } };
  await cluster.client.patch(extensionConfigs, NAME, { metadata, spec }, { type: 'merge' });
}

/** In base64. */
export async function injectedAuthority({ cluster }: Scene): Promise<string | undefined> {
  return (await cluster.client.get(extensionConfigs, NAME)).spec.clientConfig.caBundle;
}

/** Sets the URL that the managers call from now on. */
export async function useAddress(scene: Scene, url: string): Promise<void> {
  await scene.cluster.client.patch(
    extensionConfigs,
    NAME,
    { spec: { clientConfig: { url } } },
    { type: 'merge' },
  );
  await discovered(scene, 'True');
}

export async function unregister({ cluster }: Scene, name: string): Promise<void> {
  await cluster.client.delete(extensionConfigs, name);
}

export async function register(scene: Scene): Promise<void> {
  const { checks, extension, cluster } = scene;
  await setAuthority(scene, extension.authority);
  await applyConfig(scene, NAME);
  await checks.check(
    'the extension is discovered over mutual TLS, with the CA that core put in',
    async () => {
      await discovered(scene, 'True');
      const { spec, status } = await cluster.client.get(extensionConfigs, NAME);
      const hooks = status?.handlers?.map(({ requestHook }) => requestHook.hook).toSorted() ?? [];
      return [
        ...(hooks.join() === 'CanUpdateMachine,CanUpdateMachineSet,UpdateMachine'
          ? []
          : [`hooks: ${hooks.join()}`]),
        ...(spec.clientConfig.caBundle ? [] : ['caBundle is empty']),
        ...((await isRealDefinition(scene))
          ? []
          : ['the definition of Machines is not that of Cluster API']),
      ];
    },
  );
}

async function applyConfig(scene: Scene, name: string): Promise<void> {
  await scene.apply(extensionConfig(scene.extension.url, name));
}

export function extensionConfig(url: string, name = NAME): object {
  const annotations = { [FROM_SECRET]: `${NAMESPACE}/${CA_SECRET}` };
  return {
    apiVersion: 'runtime.cluster.x-k8s.io/v1beta2',
    kind: 'ExtensionConfig',
    metadata: { name, annotations },
    spec: {
      clientConfig: { url },
      namespaceSelector: { matchLabels: { 'in-place': 'yes' } },
      settings: { partial: 'deny' },
    },
  };
}

/** Registers a second extension for the same hooks, which Cluster API does not allow. */
export async function registerAgain(scene: Scene, name: string): Promise<void> {
  await applyConfig(scene, name);
  await discovered(scene, 'True', name);
}
