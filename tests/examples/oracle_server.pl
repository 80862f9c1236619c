#!/usr/bin/perl
# oracle_server.py in Perl, for what a program in another language looks like.
#
#     python -m pipeline dataset=oracle_server dataset.command="'perl tests/examples/oracle_server.pl bits'"

use strict;
use warnings;
use JSON::PP;

$| = 1;    # an answer must not wait in a buffer
my ($folder) = @ARGV;
my $json = JSON::PP->new->canonical;
my @blocks;

sub best {
    my ($truth, $x, $w, $loss) = @_;
    my ($n, @score, @back) = scalar @$x;
    for my $t (0 .. $n - 1) {
        my @own = map { $loss * ($_ != $truth->[$t]) / $n + $w->[0] * $x->[$t] * $_ } 0, 1;
        if ($t) {
            my @turn = map { $score[1 - $_] > $score[$_] + $w->[1] } 0, 1;    # the bit before is the other one
            push @back, [map { $turn[$_] ? 1 - $_ : $_ } 0, 1];
            @own = map { $own[$_] + ($turn[$_] ? $score[1 - $_] : $score[$_] + $w->[1]) } 0, 1;
        }
        @score = @own;
    }
    my @y = ($score[1] > $score[0] ? 1 : 0);
    push @y, $_->[$y[-1]] for reverse @back;
    return [reverse @y];
}

sub answer {
    my ($q) = @_;
    my ($truth, $x) = @{ $blocks[$q->{block}] };
    my ($what, $y) = ($q->{ask}, $q->{y});
    return $truth if $what eq "truth";
    return 1 / @$truth if $what eq "least_loss";
    if ($what eq "features") {
        my ($sum, $equal) = (0, 0);
        $sum += $x->[$_] * $y->[$_] for 0 .. $#$y;
        $equal += $y->[$_] == $y->[$_ + 1] for 0 .. $#$y - 1;
        return [$sum + 0, $equal + 0];
    }
    return (grep { $truth->[$_] != $y->[$_] } 0 .. $#$y) / @$y if $what eq "loss";
    return best($truth, $x, $q->{theta}, $what eq "max_oracle" ? 1 : 0);
}

while (my $line = <STDIN>) {
    my $q = $json->decode($line);
    if ($q->{ask} eq "hello") {
        open my $file, "<", "$folder/$q->{split}.txt" or die "$folder/$q->{split}.txt: $!\n";
        @blocks = map { my ($bits, @x) = split; [[map { $_ + 0 } split //, $bits], [map { $_ + 0 } @x]] } <$file>;
        print $json->encode({ blocks => scalar @blocks, d => 2, labels => 2, answers => ["least_loss"] }), "\n";
    }
    else { print $json->encode({ answer => answer($q) }), "\n" }
}
