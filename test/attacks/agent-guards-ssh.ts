/** Lists the guards of the kubeadm dialect: of connections to hosts, and of the binaries for a host. */
import type { AgentGuard } from './agent-guards.ts';

export const SSH_GUARDS: readonly AgentGuard[] = [
  {
    name: 'ssh-questions',
    file: 'dialects/kubeadm/plan/ssh.ts',
    check: "BatchMode: 'yes'",
    planted: {
      'is weaker': "'no'",
    },
  },
  {
    name: 'ssh-host-key',
    file: 'dialects/kubeadm/plan/ssh.ts',
    check: "StrictHostKeyChecking: 'yes'",
    planted: {
      'accepts new hosts': "'accept-new'",
      'accepts each host': "'no'",
    },
  },
  {
    name: 'ssh-localhost',
    file: 'dialects/kubeadm/plan/ssh.ts',
    check: "NoHostAuthenticationForLocalhost: 'no'",
    planted: {
      'is weaker': "'yes'",
    },
  },
  {
    name: 'ssh-new-keys',
    file: 'dialects/kubeadm/plan/ssh.ts',
    check: "UpdateHostKeys: 'no'",
    planted: {
      'is weaker': "'yes'",
    },
  },
  {
    name: 'ssh-agent',
    file: 'dialects/kubeadm/plan/ssh.ts',
    check: "ForwardAgent: 'no'",
    planted: {
      'is weaker': "'yes'",
    },
  },
  {
    name: 'ssh-tickets',
    file: 'dialects/kubeadm/plan/ssh.ts',
    check: "GSSAPIDelegateCredentials: 'no'",
    planted: {
      'is weaker': "'yes'",
    },
  },
  {
    name: 'ssh-screen',
    file: 'dialects/kubeadm/plan/ssh.ts',
    check: "ForwardX11: 'no'",
    planted: {
      'is weaker': "'yes'",
    },
  },
  {
    name: 'ssh-ports',
    file: 'dialects/kubeadm/plan/ssh.ts',
    check: "ClearAllForwardings: 'yes'",
    planted: {
      'is weaker': "'no'",
    },
  },
  {
    name: 'ssh-known-hosts',
    file: 'dialects/kubeadm/plan/ssh.ts',
    check: 'ssh.knownHostsFile',
    planted: {
      'is removed': 'false',
    },
  },
  {
    name: 'ssh-shared-hosts',
    file: 'dialects/kubeadm/plan/ssh.ts',
    check: "GlobalKnownHostsFile: 'none'",
    planted: {
      'is weaker': "'/etc/ssh/ssh_known_hosts'",
    },
  },
  {
    name: 'ssh-hosts-command',
    file: 'dialects/kubeadm/plan/ssh.ts',
    check: "KnownHostsCommand: 'none'",
    planted: {
      'is weaker': "'/bin/evil'",
    },
  },
  {
    name: 'ssh-name-server',
    file: 'dialects/kubeadm/plan/ssh.ts',
    check: "VerifyHostKeyDNS: 'no'",
    planted: {
      'is weaker': "'yes'",
    },
  },
  {
    name: 'ssh-socket',
    file: 'dialects/kubeadm/plan/ssh.ts',
    check: "ControlPath: 'none'",
    planted: {
      'uses the socket of the configuration': "'/srv/evil'",
    },
  },
  {
    name: 'ssh-folder',
    file: 'dialects/kubeadm/plan/ssh.ts',
    check: "await mkdtemp(join(tmpdir(), 'refit-ssh-'))",
    planted: {
      'is a folder for all users': "join(tmpdir(), 'refit-ssh')",
    },
  },
  {
    name: 'ssh-reserved',
    file: 'dialects/kubeadm/plan/manifest.ts',
    check: 'RESERVED.test(name)',
    planted: {
      'is removed': 'false',
    },
  },
  {
    name: 'ssh-option-name',
    file: 'dialects/kubeadm/plan/manifest.ts',
    check: 'OPTION_NAME.test(name)',
    planted: {
      'is removed': 'true',
    },
  },
  {
    name: 'checked-options',
    file: 'dialects/kubeadm/agent/perform-on-kubeadm.ts',
    check: "problem !== ''",
    planted: {
      'is removed': 'false',
    },
  },
  {
    name: 'unchecked-options',
    file: 'dialects/kubeadm/agent/perform-on-kubeadm.ts',
    check: 'code === 0',
    planted: {
      'is removed': 'true',
    },
  },
  {
    name: 'list-hash',
    file: 'dialects/kubeadm/agent/fetch-binaries.ts',
    check: 'command.sha256 === undefined',
    planted: {
      'is removed': 'false',
    },
  },
  {
    name: 'listed-binary',
    file: 'dialects/kubeadm/agent/fetch-binaries.ts',
    check: 'await fetched(name, new URL(name, command.url).href, sha256, parts)',
    planted: {
      'is removed': 'await fetched(name, new URL(name, command.url).href, undefined, parts)',
    },
  },
  {
    name: 'binaries-folder',
    file: 'dialects/kubeadm/agent/fetch-binaries.ts',
    check: 'fileTrust.makePrivate(parts.directory)',
    planted: {
      'is removed': 'files.mkdir(parts.directory, { recursive: true })',
    },
  },
  {
    name: 'list-twice',
    file: 'dialects/kubeadm/agent/fetch-binaries.ts',
    check: 'new Set(found.map(([name]) => name)).size < found.length',
    planted: {
      'is removed': 'false',
    },
  },
  {
    name: 'same-snapshot',
    file: 'dialects/kubeadm/command/restore-etcd.ts',
    check: 'other !== undefined',
    planted: {
      'is removed': 'false',
    },
  },
];
