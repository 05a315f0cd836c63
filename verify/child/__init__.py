"""What runs in a child: it loads a kernel file, runs its wrapper under guards, and sends raw bytes back."""
