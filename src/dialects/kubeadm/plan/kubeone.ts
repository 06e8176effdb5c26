/** Converts KubeOne's own manifest to a manifest of Refit: hosts, how to reach them, and the version. */
import { z } from 'zod';
import { defined, isRecord } from '../../../util/json.ts';
import { strictObject } from '../../../util/strict-object.ts';
import { nodeName, port, version } from './fields.ts';

const OF_KUBEONE =
  'ipv6Addresses sshHostPublicKey bastionHostPublicKey isLeader taints labels annotations kubelet';
const NOT_READ = `${OF_KUBEONE} operatingSystem`.split(' ');
const READ = ['apiVersion', 'kind', 'name', 'versions', 'controlPlane', 'staticWorkers'];

/** Returns a schema for an optional text. An empty text counts as missing, because `kubeone config dump` writes empty texts. */
const orNone = (type: z.ZodString) => type.optional().transform((given) => given || undefined);
const text = orNone(z.string());

/** The address becomes part of an ssh command, so its characters are limited. */
const address = orNone(
  z.string().regex(/^[\w.:-]*$/, 'is not an address; use a host name or an IP address'),
);

const host = strictObject({
  publicAddress: address,
  privateAddress: address,
  sshPort: port.optional(),
  sshUsername: text,
  sshPrivateKeyFile: text,
  sshCertFile: text,
  sshAgentSocket: text,
  bastion: address,
  bastionPort: port.optional(),
  bastionUser: text,
  bastionPrivateKeyFile: text,
  hostname: nodeName.optional(),
  ...Object.fromEntries(NOT_READ.map((name) => [name, z.unknown().optional()])),
}).refine(
  (of) => of.publicAddress ?? of.privateAddress,
  'has neither publicAddress nor privateAddress; give one',
);

/**
 * Says what to do if the manifest has no hosts. KubeOne itself reads them from the output of Terraform, and then the
 * manifest often has no `controlPlane` at all.
 */
const HOSTS_ELSEWHERE = {
  error: ({ input }: z.core.$ZodRawIssue) =>
    input === undefined || input === null || Array.isArray(input)
      ? 'is missing or empty; if only Terraform knows the hosts, run `terraform output -json > tf.json` and `kubeone config dump -m kubeone.yaml -t tf.json > with-hosts.yaml`, and use with-hosts.yaml'
      : undefined,
};

const cluster = z.looseObject({
  apiVersion: z.enum(['kubeone.k8c.io/v1beta2', 'kubeone.k8c.io/v1beta3']),
  /** The name becomes the name of a file, so its characters are limited. */
  name: z
    .string()
    .regex(/^[a-z0-9][-a-z0-9.]*$/, 'is not a name; use lower-case letters, digits, "-" and "."'),
  versions: z.looseObject({ kubernetes: version }),
  controlPlane: z.looseObject(
    { hosts: z.array(host, HOSTS_ELSEWHERE).min(1, HOSTS_ELSEWHERE) },
    HOSTS_ELSEWHERE,
  ),
  staticWorkers: strictObject({ hosts: z.array(host).nullish() }).nullish(),
});

/** The fields of KubeOne's manifest that Refit's manifest does not have. */
export interface KubeOneParts {
  readonly name: string;
  readonly untouched: readonly string[];
  /**
   * The command that prints the name of a host, for hosts without `hostname` in the manifest. Until it has run on a host, the
   * host is called `unnamed-` and a number.
   */
  readonly asked: string;
}

export const UNNAMED = 'unnamed-';

/**
 * The schema of KubeOne's manifest. It converts the manifest to the form of Refit's manifest, and keeps the names of
 * the fields that Refit does not convert. The binaries get the paths that the guide in the documentation uses.
 */
export const kubeOneManifest = cluster.transform((value) => {
  const { name, versions, controlPlane, staticWorkers, cloudProvider } = value;
  const controllers = controlPlane.hosts.map((each) => ({ each, role: 'controlPlane' }));
  const workers = (staticWorkers?.hosts ?? []).map((each) => ({ each, role: 'worker' }));
  const hosts = [...controllers, ...workers];
  const folder = `/opt/kubernetes/${versions.kubernetes}`;
  const untouched = [
    ...Object.keys(value).filter((field) => !READ.includes(field)),
    ...Object.keys(controlPlane).flatMap((field) =>
      field === 'hosts' ? [] : [`controlPlane.${field}`],
    ),
    ...NOT_READ.filter((field) => hosts.some(({ each }) => Object.hasOwn(each, field))).map(
      (field) => `hosts[].${field}`,
    ),
  ];
  const isAzure = isRecord(cloudProvider) && 'azure' in cloudProvider;
  const parts: KubeOneParts = { name, untouched, asked: isAzure ? 'hostname' : 'hostname -f' };
  const manifest = {
    version: versions.kubernetes,
    hosts: hosts.map(({ each, role }, index) => ({
      role,
      ...reached(each, `${UNNAMED}${index + 1}`),
    })),
    binaries: { kubeadm: { path: `${folder}/kubeadm` }, kubelet: { path: `${folder}/kubelet` } },
  };
  return { manifest, parts };
});

/**
 * Returns the settings with which ssh reaches a host. KubeOne has the same defaults as Refit: the user root and port
 * 22. For the bastion, the defaults are the user and the key of the host.
 */
function reached(of: z.infer<typeof host>, unnamed: string) {
  const bastion = {
    port: of.bastionPort,
    user: of.bastionUser,
    identityFile: of.bastionPrivateKeyFile,
  };
  const options = {
    CertificateFile: of.sshCertFile,
    IdentityAgent: of.sshAgentSocket?.replace(/^env:/, '$'),
  };
  return defined({
    name: of.hostname ?? unnamed,
    address: of.publicAddress ?? of.privateAddress,
    port: of.sshPort,
    user: of.sshUsername,
    identityFile: of.sshPrivateKeyFile,
    bastion: of.bastion === undefined ? undefined : defined({ address: of.bastion, ...bastion }),
    options: defined(options),
  });
}
