/** Owns the shape of one resolved connection: which server, how to trust it, and as whom to speak. */

/** PEM text, or a file that holds it and may be replaced while the process runs. */
export type Pem = { readonly text: string } | { readonly file: string };

/** A credential plugin as kubeconfigs declare it (`client.authentication.k8s.io`). */
export interface ExecConfig {
  readonly apiVersion: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Tells the plugin the cluster in KUBERNETES_EXEC_INFO. */
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
  /** Wins over `token`, and is read again when it changes. */
  readonly tokenFile?: string;
  readonly exec?: ExecConfig;
  readonly impersonate?: Impersonation;
}

export interface ClusterConfig {
  /** Base URL; spread a config with another one to speak to another replica with the same credentials. */
  readonly server: string;
  readonly certificateAuthority?: Pem;
  /** Name to expect in the server's certificate where it isn't the host of `server`. */
  readonly tlsServerName?: string;
  readonly insecureSkipTlsVerify?: boolean;
  readonly user: UserConfig;
  /** The context's namespace, `default` where it names none. */
  readonly namespace: string;
  /** File or environment it was read from, for messages. */
  readonly source: string;
}
