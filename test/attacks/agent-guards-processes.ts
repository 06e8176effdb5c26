/** Lists the guards of processes, of the status socket, and of services. */
import type { AgentGuard } from './agent-guards.ts';

export const PROCESS_GUARDS: readonly AgentGuard[] = [
  {
    name: 'process-first',
    file: 'agent/service/trusted-process.ts',
    check: 'pid <= 1 || pid === process.pid',
    planted: {
      'is removed': 'false',
      'accepts PID 1': 'pid < 1 || pid === process.pid',
      'accepts the agent': 'pid <= 1',
    },
  },
  {
    name: 'process-users',
    file: 'agent/service/trusted-process.ts',
    check: 'users?.split(/\\s+/).map(Number)',
    planted: {
      'looks only at the effective user': 'users?.split(/\\s+/).map(Number).slice(1, 2)',
    },
  },
  {
    name: 'process-user',
    file: 'agent/service/trusted-process.ts',
    check: 'users.find((uid) => !isTrustedUser(uid))',
    planted: {
      'is removed': 'undefined',
    },
  },
  {
    name: 'process-set-user',
    file: 'agent/service/trusted-process.ts',
    check: '(mode & 0o6000) !== 0',
    planted: {
      'is removed': 'false',
      'looks only at the set-user-id bit': '(mode & 0o4000) !== 0',
      'looks only at the set-group-id bit': '(mode & 0o2000) !== 0',
    },
  },
  {
    name: 'process-container',
    file: 'agent/service/trusted-process.ts',
    check: "container !== undefined && container !== containerOf('self')",
    planted: {
      'is removed': 'false',
    },
  },
  {
    name: 'process-root',
    file: 'agent/service/trusted-process.ts',
    check: 'root !== undefined && !roots.includes(root)',
    planted: {
      'is removed': 'false',
    },
  },
  {
    name: 'socket-path',
    file: 'agent/service/trusted-service.ts',
    check: 'await assertTrustedPath(socket)',
    planted: {
      'is removed': 'undefined',
    },
  },
  {
    name: 'socket-process',
    file: 'agent/service/trusted-service.ts',
    check: 'distrust !== undefined',
    planted: {
      'is removed': 'false',
    },
  },
  {
    name: 'socket-service',
    file: 'agent/service/trusted-service.ts',
    check: 'args === undefined && !(binary !== undefined && wasStartedFrom(pid, binary))',
    planted: {
      'is removed': 'false',
    },
  },
  {
    name: 'socket-same',
    file: 'agent/service/trusted-service.ts',
    check: '!isSameProcess(findProcess(pid), process)',
    planted: {
      'is removed': 'false',
    },
  },
  {
    name: 'service-process',
    file: 'agent/service/find-services.ts',
    check: 'whyForeign(pid) === undefined',
    planted: {
      'is removed': 'true',
    },
  },
  {
    name: 'service-restarted',
    file: 'agent/service/find-services.ts',
    check: 'whyForeign(pid) !== undefined || !processes.wasStartedFrom(pid, path)',
    planted: {
      'accepts processes of other users': '!processes.wasStartedFrom(pid, path)',
      'accepts other programs': 'whyForeign(pid) !== undefined',
    },
  },
  {
    name: 'supervisor-log',
    file: 'agent/service/openrc.ts',
    check: 'whyForeign(supervisor) === undefined',
    planted: {
      'is removed': 'true',
    },
  },
  {
    name: 'supervisor-gone',
    file: 'agent/service/openrc.ts',
    check: 'whyForeign(parent) === undefined',
    planted: {
      'is removed': 'true',
    },
  },
  {
    name: 'supervisor-name',
    file: 'agent/service/openrc.ts',
    check: 'whyForeign(supervisor) !== undefined',
    planted: {
      'is removed': 'false',
    },
  },
  {
    name: 'log-path',
    file: 'agent/service/openrc.ts',
    check: 'await assertTrustedPath(path)',
    planted: {
      'is removed': 'undefined',
    },
  },
  {
    name: 'kubelet-process',
    file: 'agent/service/kubelet-ground.ts',
    check: 'whyForeign(Number(process)) !== undefined',
    planted: {
      'is removed': 'false',
    },
  },
  {
    name: 'profile-path',
    file: 'agent/service/worker-profile.ts',
    check: 'await assertTrustedPath(path)',
    planted: {
      'is removed': 'undefined',
    },
  },
  {
    name: 'binary-path',
    file: 'agent/service/observe-host.ts',
    check: 'await fileTrust.assertReplaceable(binary)',
    planted: {
      'is removed': 'undefined',
    },
  },
  {
    name: 'binary-runs',
    file: 'agent/service/observe-host.ts',
    check: 'binary !== undefined && executes(pid, binary)',
    planted: {
      'is removed': 'binary !== undefined',
    },
  },
  {
    name: 'place-pid',
    file: 'agent/service/service-place.ts',
    check: 'answers[index]?.pid === pid',
    planted: {
      'accepts each answer': 'answers[index] !== undefined',
    },
  },
  {
    name: 'place-proven',
    file: 'agent/service/service-place.ts',
    check: 'isProven || !isFound',
    planted: {
      'is removed': 'true',
    },
  },
  {
    name: 'service-searched',
    file: 'agent/service/observe-host.ts',
    check: 'wasStartedFrom(pid, binary)',
    planted: {
      'is removed': 'true',
    },
  },
  {
    name: 'kill-same',
    file: 'agent/service/processes.ts',
    check: 'isSameProcess(findProcess(target.pid), target)',
    planted: {
      'is removed': 'true',
    },
  },
  {
    name: 'unit-process',
    file: 'agent/service/systemd.ts',
    check: 'unit?.mainPid === pid || (unit && (await names(unit, /(\\/[^\\s;"\']+)/g, binary)))',
    planted: {
      'is removed': 'true',
    },
  },
];
