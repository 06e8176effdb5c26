/** One resolved connection: the server, how to trust it, and the credentials. */
import { defined } from '../../util/json.ts';

/** PEM text, or a file that holds it and may be replaced while the process runs. */
export type Pem = { readonly text: string } | { readonly file: string };

/** A credential plugin as kubeconfigs declare it (`client.authentication.k8s.io`). */
export interface ExecConfig {
  readonly apiVersion: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Describes the cluster to the plugin in KUBERNETES_EXEC_INFO. */
  readonly provideClusterInfo: boolean;
  readonly installHint?: string;
}

export interface Impersonation {
  readonly user: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

export interface UserConfig {
  readonly clientCertificate?: Pem;
  readonly clientKey?: Pem;
  readonly token?: string;
  /** Wins over `token`; read again when it changes. */
  readonly tokenFile?: string;
  readonly exec?: ExecConfig;
  readonly impersonate?: Impersonation;
}

export interface ClusterConfig {
  /** Base URL; replace it to reach another replica with the same credentials. */
  readonly server: string;
  readonly certificateAuthority?: Pem;
  /** Expected name in the server's certificate; the host of `server` by default. */
  readonly tlsServerName?: string;
  readonly insecureSkipTlsVerify?: boolean;
  /** Of http; it opens a tunnel to the server. */
  readonly proxyUrl?: string;
  readonly user: UserConfig;
  readonly namespace: string;
  /** The kubeconfigs that it comes from, in the order of their entries; none in a pod. */
  readonly files: readonly string[];
}

/** As kubeconfigs have it. `authority` is PEM text. */
export function clusterEntry(config: ClusterConfig, authority: string | undefined): object {
  return defined({
    server: config.server,
    'certificate-authority-data': authority && Buffer.from(authority).toString('base64'),
    'tls-server-name': config.tlsServerName,
    'insecure-skip-tls-verify': config.insecureSkipTlsVerify || undefined,
  });
}
