# Owns the stand-in for k0s: the program that `buildStandIn` writes into each of its files, behind the version. It loads no
# modules, because they take longer than all the rest; so the kernel's numbers stand here, those of Linux.
use strict;
use warnings;

my ($AF_UNIX, $AF_INET, $SOCK_STREAM, $SOL_SOCKET, $SO_REUSEADDR, $IPPROTO_TCP, $TCP_NODELAY) = (1, 2, 1, 1, 2, 6, 1);
my ($MSG_DONTWAIT, $EAGAIN, $WRITING, $BACKLOG, $CHUNK) = (0x40, 11, 1, 511, 65_536);
# A bad build ends after a start as long as a real one's, which who looks now and then sees; or so long after its first answer.
my ($START_SECONDS, $LATER_SECONDS) = (0.1, 0.2);
# Perl acts on a signal that comes just before it waits only once it has waited.
my $LONGEST_SECONDS = 0.3;

# Some are of no use to it, but to whoever reads its command line.
my %text = map { $_ => 1 } qw(status-socket data-dir disable-components kubelet-extra-args listen upstream);
my %switch = map { $_ => 1 } qw(enable-worker single);
my %flags = ('status-socket' => '/run/k0s/status.sock', upstream => '127.0.0.1:6443');
my $role = '';
while (defined(my $word = shift @ARGV)) {
  if ($word !~ /^--([^=]+)(?:=(.*))?$/s) { $role ||= $word }
  elsif ($switch{$1}) { $flags{$1} = 1 }
  elsif ($text{$1}) { $flags{$1} = $2 // shift @ARGV }
  else { fail("unknown flag: --$1") }
}
fail("unknown command $role") unless $role eq 'controller' || $role eq 'worker';

# What happens when there is something to read, and what is still to be written, by file number.
my (%read, %write);
my ($answers, $seconds_left) = (0, undef);

$SIG{PIPE} = 'IGNORE';
$SIG{TERM} = \&leave;
# Not at once, as no real build does: an agent that looks now and then counts what it saw.
if ($broken eq 'crashes') {
  select undef, undef, undef, $START_SECONDS;
  fail('panic: this build is broken');
}
serve_status() if $broken ne 'hangs';
pass_through(split_address($flags{listen})) if defined $flags{listen};
# The supervisor holds the other end of the pipe: where it is gone, nobody is left to end this process.
$read{fileno STDIN} = sub { sysread STDIN, my $said, $CHUNK or leave() } if -p STDIN || -S STDIN;
wait_and_act() while 1;

sub wait_and_act {
  my ($readable, $writable) = ('', '');
  vec($readable, $_, 1) = 1 for keys %read;
  vec($writable, $_, 1) = 1 for keys %write;
  my $wait = defined $seconds_left && $seconds_left < $LONGEST_SECONDS ? $seconds_left : $LONGEST_SECONDS;
  my ($found, $rest) = select $readable, $writable, undef, $wait;
  $seconds_left -= $wait - $rest if defined $seconds_left;
  fail('panic: this build is broken') if defined $seconds_left && $seconds_left <= 0;
  return if $found <= 0;
  my @ready = map { [\%read, $_, $read{$_}] } grep { vec $readable, $_, 1 } keys %read;
  push @ready, map { [\%write, $_, $write{$_}] } grep { vec $writable, $_, 1 } keys %write;
  for (@ready) {
    my ($actions, $number, $action) = @$_;
    # The one before may have closed it, and opened another one under its number.
    $action->() if ($actions->{$number} // 0) == $action;
  }
}

# Every open connection ends with the process, as those of a real one do.
sub leave {
  unlink $flags{'status-socket'} if $broken ne 'hangs';
  exit 0;
}

sub listener {
  my ($family, $address) = @_;
  socket my $socket, $family, $SOCK_STREAM, 0 or fail("socket: $!");
  setsockopt $socket, $SOL_SOCKET, $SO_REUSEADDR, 1 if $family == $AF_INET;
  bind $socket, $address or fail("bind: $!");
  listen $socket, $BACKLOG or fail("listen: $!");
  return $socket;
}

# As k0s answers: Go field names, HTTP/1.1 on a unix socket.
sub serve_status {
  my $path = $flags{'status-socket'};
  unlink $path;
  my $socket = listener($AF_UNIX, pack 'S a*', $AF_UNIX, "$path\0");
  $read{fileno $socket} = sub {
    accept my $peer, $socket or return;
    my $asked = '';
    $read{fileno $peer} = sub {
      return forget($peer) unless sysread $peer, $asked, $CHUNK, length $asked;
      answer($peer, $asked) if $asked =~ /\r\n\r\n/;
    };
  };
}

sub answer {
  my ($peer, $asked) = @_;
  return if $answers++ > 0 && $broken eq 'hangs-later';
  $seconds_left //= $LATER_SECONDS if $broken eq 'crashes-later';
  my $says = $broken eq 'wrong-version' ? "$version.wrong" : $version;
  my ($workloads, $single) = map { $_ ? 'true' : 'false' } $role eq 'worker' || $flags{'enable-worker'}, $flags{single};
  my $parent = getppid;
  my $status = qq({"Version":"$says","Pid":$$,"PPid":$parent,"Role":"$role","Workloads":$workloads,"SingleNode":$single});
  my $result = $asked =~ m{^\S+ /status } ? '200 OK' : '404 Not Found';
  my @head = ("HTTP/1.1 $result", 'content-type: application/json', 'content-length: ' . length $status);
  send $peer, join("\r\n", @head, 'connection: close', '', $status), $MSG_DONTWAIT;
  forget($peer);
}

# A controller's API server: its own address in front of the one that the whole stand-in cluster shares.
sub pass_through {
  my $socket = listener($AF_INET, pack 'S n a4 x8', $AF_INET, reverse @_);
  $read{fileno $socket} = sub {
    accept my $near, $socket or return;
    my ($host, $port) = split_address($flags{upstream});
    socket my $far, $AF_INET, $SOCK_STREAM, 0 or fail("socket: $!");
    return forget($near) unless connect $far, pack 'S n a4 x8', $AF_INET, $port, $host;
    # A real one does not hold the second half of an answer back until the first is acknowledged, up to 40 ms later.
    setsockopt $_, $IPPROTO_TCP, $TCP_NODELAY, 1 for $near, $far;
    my $open = 2;
    copy(@$_, sub { forget($near, $far) if !--$open || $_[0] }) for [$near, $far], [$far, $near];
  };
}

# Calls `ended` when there is nothing more to read, and with a true value after an error.
sub copy {
  my ($from, $to, $ended) = @_;
  my ($in, $out) = (fileno $from, fileno $to);
  $read{$in} = sub {
    my $length = sysread($from, my $buffer, $CHUNK);
    return $ended->(1) unless defined $length;
    delete $read{$in};
    return shutdown($to, $WRITING) && $ended->() if $length == 0;
    $write{$out} = sub {
      my $sent = send $to, $buffer, $MSG_DONTWAIT;
      return $! == $EAGAIN || $ended->(1) unless defined $sent;
      $buffer = substr $buffer, $sent;
      return if $buffer ne '';
      delete $write{$out};
      copy($from, $to, $ended);
    };
    $write{$out}->();
  };
}

sub forget {
  for (@_) {
    delete $read{fileno $_};
    delete $write{fileno $_};
    close $_;
  }
}

# Host in the kernel's form, and port.
sub split_address {
  my ($host, $port) = $_[0] =~ /^(.*):(\d+)$/ or fail("no address: $_[0]");
  return (scalar gethostbyname($host), $port);
}

sub fail {
  print STDERR "$_[0]\n";
  exit 1;
}
