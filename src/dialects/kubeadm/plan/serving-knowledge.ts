/**
 * Gathers the facts with which a request for a serving certificate is compared: the host, its Node, and the addresses
 * of the cluster.
 */
import { z } from 'zod';
import type { KubeClient } from '../../../kube/client.ts';
import { configMaps } from '../../../kube/resources.ts';
import { listNodes } from '../../../kube/trimmed.ts';
import { failing } from '../../../util/errors.ts';
import { parseForeignYaml } from '../../../util/yaml.ts';
import type { Manifest, ManifestHost } from './manifest.ts';
import type { Known } from './serving-request.ts';

export interface KnowledgeParts {
  readonly manifest: Manifest;
  readonly client: KubeClient;
  /** URL of the API server that this process uses. */
  readonly server: string;
  /**
   * Resolves with the IP addresses to which this machine resolves the names. If a name is already an IP address, it is
   * returned unchanged.
   */
  readonly addressesOf: (names: readonly string[]) => Promise<readonly string[]>;
  readonly abort: AbortSignal;
}

/** The fields of kubeadm's ClusterConfiguration that name addresses. */
const CLUSTER = z.object({
  controlPlaneEndpoint: z.string().default(''),
  apiServer: z.object({ certSANs: z.array(z.string()).default([]) }).prefault({}),
  networking: z.object({ serviceSubnet: z.string().default('') }).prefault({}),
});

/**
 * Resolves with the facts about a host. `look` is the output of serving.sh on the host. Rejects with REFIT_REFUSED if
 * the ConfigMap of kubeadm cannot be parsed.
 */
export async function knownAbout(
  host: ManifestHost,
  look: string,
  { manifest, client, server, addressesOf, abort }: KnowledgeParts,
): Promise<Known> {
  const { items } = await listNodes(client, { abort });
  const { data } = await client.get(configMaps, 'kubeadm-config', {
    namespace: 'kube-system',
    abort,
  });
  const written = parseForeignYaml(
    data?.['ClusterConfiguration'] ?? '{}',
    failing('REFIT_REFUSED', 'ConfigMap kube-system/kubeadm-config: data.ClusterConfiguration: '),
  );
  const { controlPlaneEndpoint, apiServer, networking } = CLUSTER.parse(written);
  const ends = [server, `https://${controlPlaneEndpoint}`].map((url) =>
    (URL.parse(url)?.hostname ?? '').replaceAll(/[[\]]/g, ''),
  );
  return {
    hosts: manifest.hosts,
    host,
    own: await addressesOf([host.address ?? host.name]),
    nodes: items,
    shown: [...look.matchAll(/^address=(.*)$/gm)].map(([, found = '']) => found),
    controlPlane: await addressesOf([...ends, ...apiServer.certSANs]),
    services: networking.serviceSubnet,
  };
}
