/** Describes one connection to a cluster: the server, how to trust it, and the credentials. */
import { defined } from '../../util/json.ts';

/**
 * PEM text, or the path of a file that contains it. The file may be replaced while the process
 * runs.
 */
export type Pem = { readonly text: string } | { readonly file: string };

/** A credential plugin, as a kubeconfig declares it (`client.authentication.k8s.io`). */
export interface ExecConfig {
  readonly apiVersion: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** If true, the plugin gets a description of the cluster in the variable KUBERNETES_EXEC_INFO. */
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
  /** The path of a file with the token. It has precedence over `token`. The file is read again when it changes. */
  readonly tokenFile?: string;
  readonly exec?: ExecConfig;
  readonly impersonate?: Impersonation;
}

export interface ClusterConfig {
  /**
   * The base URL. Another API server of the cluster is reached with another `server` and the same
   * credentials.
   */
  readonly server: string;
  readonly certificateAuthority?: Pem;
  /** The name for which the certificate of the server must be valid. The default is the host of `server`. */
  readonly tlsServerName?: string;
  readonly insecureSkipTlsVerify?: boolean;
  /** The URL of an HTTP proxy, which opens a tunnel to the server. */
  readonly proxyUrl?: string;
  readonly user: UserConfig;
  /** The name of the context in the kubeconfig; undefined in a pod. */
  readonly context?: string;
  readonly namespace: string;
  /**
   * The kubeconfig files that the connection was read from, in order of precedence. The list is
   * empty in a pod.
   */
  readonly files: readonly string[];
}

/** Returns the connection as the entry `cluster` of a kubeconfig. `authority` is PEM text. */
export function clusterEntry(config: ClusterConfig, authority: string | undefined): object {
  return defined({
    server: config.server,
    'certificate-authority-data': authority && Buffer.from(authority).toString('base64'),
    'tls-server-name': config.tlsServerName,
    'insecure-skip-tls-verify': config.insecureSkipTlsVerify || undefined,
  });
}
